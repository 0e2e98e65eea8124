package item

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// documentRecords reads JSON objects as records of a schema: a field's Source is its key, or a path if
// the object has no such key; an absent key or null is a null, other keys are ignored. Documents are
// read strictly (rule D9). (An open schema needs its columns named: JSON objects have no header.)
type documentRecords struct {
	DocumentReader
	schema *row.Schema
	find   *jsontext.Finder
}

func newDocumentRecords(r DocumentReader, schema *row.Schema) *documentRecords {
	d := &documentRecords{DocumentReader: r, schema: schema, find: jsontext.NewFinder()}
	for i := range schema.Len() {
		d.find.AddName(schema.Field(i).Source())
	}
	if w, ok := componentOf(r).(keyWatcher); ok {
		d.find.Unknown = w.UnknownKeys()
	}
	expectKeys(r, func(k *jsontext.WantedKeys) {
		for i := range schema.Len() {
			if f := schema.Field(i); !f.Optional {
				k.Add(f.Name, f.Source())
			}
		}
	})
	return d
}

func (d *documentRecords) Component() any      { return componentOf(d.DocumentReader) }
func (d *documentRecords) Schema() *row.Schema { return d.schema }
func (d *documentRecords) Meta() Meta          { return metaOf(d.DocumentReader) }

func (d *documentRecords) ReadRecord(ctx context.Context, dst []row.Value) error {
	doc, err := d.ReadDocument(ctx)
	if err != nil {
		return err
	}
	if err := d.decode(doc, dst); err != nil {
		var unknown *jsontext.UnknownKeyError
		if errors.As(err, &unknown) {
			return exception.Fatal(d.Meta().String(), err)
		}
		return Consumed(d.Meta(), err)
	}
	return nil
}

func (d *documentRecords) decode(doc []byte, dst []row.Value) error {
	err := d.find.Find(doc)
	if err == nil && !isObject(doc) {
		err = fmt.Errorf("not a JSON object: %s", jsontext.Shorten(doc))
	} else if err != nil {
		err = d.bad(doc, err)
	}
	if err != nil {
		return exception.InvalidItem("", exception.ClassParse, err)
	}
	for i := range dst {
		f := d.schema.Field(i)
		if dst[i], err = jsonValue(f, d.find.Found[i]); err != nil {
			return fault.At(placeOf(f.Name, d.find, i), err)
		}
	}
	return nil
}

func (d *documentRecords) bad(doc []byte, err error) error {
	var stray *jsontext.PathError
	var unknown *jsontext.UnknownKeyError
	if errors.As(err, &unknown) {
		return err
	}
	if errors.As(err, &stray) {
		return fault.Named(d.schema.Field(stray.Field).Name, "%w", err)
	}
	return jsontext.BadDocument(doc, err)
}

// placeOf is the value that the finder has found in a document.
func placeOf(field string, find *jsontext.Finder, i int) fault.Place {
	p := fault.Place{Field: field}
	if value := find.Found[i]; value != nil {
		p.From, p.To = find.Start[i], find.Start[i]+len(value)
	}
	return p
}

func isObject(doc []byte) bool {
	doc = bytes.TrimLeft(doc, " \t\r\n")
	return len(doc) > 0 && doc[0] == '{'
}

// recordDocuments writes records as JSON objects, keys in the schema's order.
type recordDocuments struct {
	DocumentWriter
	own documentsEncoding
}

func (d *recordDocuments) WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error {
	if err := d.own.EncodeRecords(schema, records); err != nil {
		return err
	}
	return d.WriteDocuments(ctx, d.own.docs)
}

// NewEncoding implements recordEncoder: the documents are made separately from their file.
func (d *recordDocuments) NewEncoding() RecordEncoding { return &documentsEncoding{} }

func (d *recordDocuments) WriteEncoded(ctx context.Context, of RecordEncoding) (bool, error) {
	e, ok := of.(*documentsEncoding)
	if !ok {
		return false, fmt.Errorf("a %T is not an encoding of documents", of)
	}
	return true, d.WriteDocuments(ctx, e.docs)
}

// documentsEncoding are records as JSON objects: a RecordEncoding.
type documentsEncoding struct {
	docs [][]byte
	buf  []byte
	ends []int
}

// EncodeRecords makes the objects.
func (d *documentsEncoding) EncodeRecords(schema *row.Schema, records [][]row.Value) error {
	d.buf, d.ends, d.docs = d.buf[:0], d.ends[:0], d.docs[:0]
	var err error
	for _, record := range records {
		d.buf = append(d.buf, '{')
		for i, v := range record {
			if i > 0 {
				d.buf = append(d.buf, ',')
			}
			f := schema.Field(i)
			d.buf = appendJSONString(d.buf, f.Source())
			d.buf = append(d.buf, ':')
			if d.buf, err = appendJSONValue(d.buf, f, v); err != nil {
				return err
			}
		}
		d.buf = append(d.buf, '}')
		d.ends = append(d.ends, len(d.buf))
	}
	from := 0
	for _, end := range d.ends {
		d.docs = append(d.docs, d.buf[from:end:end])
		from = end
	}
	return nil
}
