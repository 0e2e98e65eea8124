package item

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// keyExpecter is a DocumentReader that receives the keys of its items, so that it finds a key that no
// document has before it delivers the first item (rule D9). Optional fields of a schema are excluded.
type keyExpecter interface {
	ExpectKeys(keys jsontext.WantedKeys)
}

// expectKeys passes the required keys to r, if it is a keyExpecter.
func expectKeys(r DocumentReader, collect func(*jsontext.WantedKeys)) {
	e, ok := componentOf(r).(keyExpecter)
	if !ok {
		return
	}
	keys := jsontext.WantedKeys{Finder: jsontext.NewFinder()}
	if collect(&keys); len(keys.Names) > 0 {
		e.ExpectKeys(keys)
	}
}

// keyWatcher is a DocumentReader that handles keys that the item type does not have; a nil function
// ignores them. Its error is fatal.
type keyWatcher interface {
	UnknownKeys() func(path string) error
}

// CheckDocumentKeys refuses an item type with a name that looks like a path in JSON documents and is
// not valid.
func CheckDocumentKeys(item Type) error {
	var errs []error
	check := func(field, name string) {
		if err := jsontext.CheckName(name); err != nil {
			errs = append(errs, fmt.Errorf("field %s: %w", field, err))
		}
	}
	if t := structOf(item.GoType()); item.GoType() != reflect.TypeFor[Row]() && t != nil {
		for i := range t.NumField() {
			if sf := t.Field(i); hasFrom(sf) {
				check(sf.Name, sf.Tag.Get("from"))
			}
		}
	} else if s := item.Schema(); s != nil {
		for i := range s.Len() {
			check(s.Field(i).Name, s.Field(i).Source())
		}
	}
	return errors.Join(errs...)
}

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

func (d *documentRecords) Meta() Meta { return metaOf(d.DocumentReader) }

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
		if dst[i], err = jsonValue(d.schema.Field(i), d.find.Found[i]); err != nil {
			return err
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
		return fmt.Errorf("field %s: %w", d.schema.Field(stray.Field).Name, err)
	}
	return jsontext.BadDocument(doc, err)
}

func isObject(doc []byte) bool {
	doc = bytes.TrimLeft(doc, " \t\r\n")
	return len(doc) > 0 && doc[0] == '{'
}

func jsonValue(f *row.Field, raw json.RawMessage) (row.Value, error) {
	v, err := anyJSONValue(f, raw)
	if err != nil || !f.Exact {
		return v, err
	}
	return f.ExactJSON(raw, v)
}

func anyJSONValue(f *row.Field, raw json.RawMessage) (row.Value, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return f.Missing()
	}
	if f.Kind == row.JSONKind {
		return jsonPart(f, raw)
	}
	if string(raw) == `""` && f.Nulls == nil && f.IsNull("") { // an empty text is not null (rule D11b)
		return f.Coerced("", emptyMisfit(f))
	}
	if f.Kind.IsList() {
		return listPart(f, raw)
	}
	if f.Nulls != nil || f.Coerce != row.CoerceError || f.Counts() || f.HasWords() {
		return looseValue(f, raw)
	}
	if raw[0] == '"' {
		if f.Kind == row.Int || f.Kind == row.Float || f.Kind == row.Bool {
			return row.Value{}, jsonMisfit(f, raw)
		}
		text, err := jsontext.Unquote(raw)
		if err != nil {
			return row.Value{}, jsonMisfit(f, raw)
		}
		return f.Parse(text)
	}
	if f.Kind == row.String && (raw[0] == '{' || raw[0] == '[') {
		return row.StringValue(string(raw)), nil // its text (rule D9c)
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
	case row.DecimalKind:
		d, err := row.ParseDecimal(string(raw))
		if err != nil {
			return v, jsonMisfit(f, raw)
		}
		return f.FitDecimal(d)
	case row.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return v, jsonMisfit(f, raw)
		}
		return row.BoolValue(raw[0] == 't'), nil
	default:
	}
	return v, jsonMisfit(f, raw)
}

// jsonPart returns a part of a document, already checked to be strict, unchanged.
func jsonPart(f *row.Field, raw json.RawMessage) (row.Value, error) {
	if f.Nulls != nil {
		text := string(raw)
		if raw[0] == '"' {
			var err error
			if text, err = jsontext.Unquote(raw); err != nil {
				return row.Value{}, jsonMisfit(f, raw)
			}
		}
		if f.IsNull(text) {
			return f.Missing()
		}
	}
	return row.JSONValue(row.CompactJSON(raw)), nil
}

// listPart returns an array of a document; a text is a list if the field defines its form.
func listPart(f *row.Field, raw json.RawMessage) (row.Value, error) {
	switch {
	case raw[0] == '"' && (f.Separator != "" || f.Coerce != row.CoerceError || f.Nulls != nil):
		text, err := jsontext.Unquote(raw)
		if err != nil {
			return row.Value{}, jsonMisfit(f, raw)
		}
		return f.Parse(text)
	case raw[0] != '[':
		return f.Coerced(string(raw), jsonMisfit(f, raw))
	}
	v, err := f.ParseArray(raw)
	if err != nil {
		return f.Coerced(string(raw), err)
	}
	return f.Known(v)
}

func jsonMisfit(f *row.Field, raw []byte) error {
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s is not of type %s", f.Name, f.Quoted(jsontext.Shorten(raw)), f.Type()))
}

func emptyMisfit(f *row.Field) error {
	hint := ""
	if f.Nullable || !f.Default.IsNull() {
		hint = `; null_if: [""] reads it as null`
	}
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf(`field %s: "" is not of type %s%s`, f.Name, f.Type(), hint))
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

func appendJSONValue(dst []byte, f *row.Field, v row.Value) ([]byte, error) {
	switch v.Kind() {
	case row.Null:
		return append(dst, "null"...), nil
	case row.Int, row.Bool, row.DecimalKind, row.JSONKind:
		return v.AppendText(dst), nil
	case row.Float:
		if err := v.Finite(); err != nil {
			return dst, exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s: %w", f.Name, err))
		}
		return v.AppendText(dst), nil
	case row.String, row.UUIDKind:
		return appendJSONString(dst, v.String()), nil
	case row.DateKind, row.Timestamp, row.BytesKind:
		if f.Counts() {
			return f.AppendText(dst, v), nil
		}
		return appendJSONString(dst, string(f.AppendText(nil, v))), nil
	}
	return f.AppendArray(dst, v), nil
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
