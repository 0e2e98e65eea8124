package core

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// documentRecords reads JSON objects as records of a schema: a field's Source
// is its key, an absent key or null is a null, other keys are ignored.
// (An open schema needs its columns named: JSON objects have no header.)
type documentRecords struct {
	DocumentReader
	schema *row.Schema
	fields map[string]int    // field by key
	raws   []json.RawMessage // value of each field, void with the document
}

func (d *documentRecords) Component() any      { return componentOf(d.DocumentReader) }
func (d *documentRecords) Schema() *row.Schema { return d.schema }

func (d *documentRecords) Meta() Meta { return metaOf(d.DocumentReader) }

func (d *documentRecords) ReadRecord(ctx context.Context, dst []row.Value) error {
	doc, err := d.ReadDocument(ctx)
	if err != nil {
		return err
	}
	if err := d.decode(doc, dst); err != nil {
		return Consumed(d.Meta(), err)
	}
	return nil
}

func (d *documentRecords) decode(doc []byte, dst []row.Value) error {
	if d.fields == nil {
		d.fields = make(map[string]int, d.schema.Len())
		for i := range d.schema.Len() {
			d.fields[d.schema.Field(i).Source()] = i
		}
		d.raws = make([]json.RawMessage, d.schema.Len())
	}
	clear(d.raws)
	ok := json.Valid(doc) && eachMember(doc, func(key, value []byte) {
		if i, known := d.fields[string(key)]; known {
			d.raws[i] = value
		}
	})
	if !ok {
		return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("not a JSON object: %s", shorten(doc)))
	}
	for i := range dst {
		var err error
		if dst[i], err = jsonValue(d.schema.Field(i), d.raws[i]); err != nil {
			return err
		}
	}
	return nil
}

func jsonValue(f *row.Field, raw json.RawMessage) (row.Value, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return row.Value{}, f.Check(row.Value{})
	}
	if raw[0] == '"' {
		if f.Kind == row.Int || f.Kind == row.Float || f.Kind == row.Bool {
			return row.Value{}, jsonMisfit(f, raw)
		}
		text, ok := jsonText(raw)
		if !ok {
			return row.Value{}, jsonMisfit(f, raw)
		}
		return f.Parse(text)
	}
	var v row.Value
	switch f.Kind {
	case row.Int:
		i, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return v, jsonMisfit(f, raw)
		}
		return row.IntValue(i), nil
	case row.Float:
		x, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return v, jsonMisfit(f, raw)
		}
		return row.FloatValue(x), nil
	case row.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return v, jsonMisfit(f, raw)
		}
		return row.BoolValue(raw[0] == 't'), nil
	case row.String, row.DateKind, row.Timestamp, row.Null:
	}
	return v, jsonMisfit(f, raw)
}

func jsonMisfit(f *row.Field, raw []byte) error {
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s is not of type %s", f.Name, shorten(raw), f.Type()))
}

func shorten(doc []byte) string {
	const most = 60
	if len(doc) > most {
		return string(doc[:most]) + "…"
	}
	return string(doc)
}

// recordDocuments writes records as JSON objects, keys in the schema's order.
type recordDocuments struct {
	DocumentWriter
	docs [][]byte
	buf  []byte
	ends []int
}

func (d *recordDocuments) WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error {
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
	return d.WriteDocuments(ctx, d.docs)
}

func appendJSONValue(dst []byte, f *row.Field, v row.Value) ([]byte, error) {
	switch v.Kind() {
	case row.Null:
		return append(dst, "null"...), nil
	case row.Int, row.Bool:
		return v.AppendText(dst), nil
	case row.Float:
		if err := v.Finite(); err != nil {
			return dst, exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s: %w", f.Name, err))
		}
		return v.AppendText(dst), nil
	case row.String:
		return appendJSONString(dst, v.Str()), nil
	case row.DateKind, row.Timestamp:
		return appendJSONString(dst, string(f.AppendText(nil, v))), nil
	}
	return dst, nil
}

func appendJSONString(dst []byte, s string) []byte {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && s[i] < utf8.RuneSelf
	}
	if plain {
		return append(append(append(dst, '"'), s...), '"')
	}
	text, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		panic(fmt.Sprintf("core: JSON of a string: %v", err))
	}
	return append(dst, text...)
}
