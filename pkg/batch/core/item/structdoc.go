package item

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/gofield"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// documentReader reads JSON documents as values of a Go type. Documents are read strictly (rule D9),
// then decoded by encoding/json, then fields with a `from` are set from it.
type documentReader[T any] struct {
	r    DocumentReader
	meta MetaReader
	find *jsontext.Finder
	from []fromField
	// hides means that no error quotes a document: items have redacted fields.
	hides bool
}

// fromField is a field of a struct that is found by its `from`.
type fromField struct {
	index   int
	field   row.Field
	flat    bool // of a row kind; otherwise encoding/json decodes the value
	pointer bool
	path    int // in the finder
	name    int // in the finder: the name for encoding/json, as for a skipped item
}

func newDocumentReader[T any](r DocumentReader, zone *time.Location) *documentReader[T] {
	d := &documentReader[T]{r: r, find: jsontext.NewFinder(), hides: hidesFields(reflect.TypeFor[T]())}
	d.meta, _ = r.(MetaReader)
	t := structOf(reflect.TypeFor[T]())
	if t == nil {
		return d
	}
	for i := range t.NumField() {
		if sf := t.Field(i); hasFrom(sf) {
			f := d.fieldFrom(i, sf)
			if f.field.Kind == row.Timestamp {
				f.field.Zone = zone
			}
			d.from = append(d.from, f)
		}
	}
	expectKeys(r, func(keys *jsontext.WantedKeys) { expectFields(keys, t, nil) })
	return d
}

func (d *documentReader[T]) fieldFrom(i int, sf reflect.StructField) fromField {
	f := fromField{index: i, path: d.find.AddName(sf.Tag.Get("from"))}
	f.name = d.find.AddPath([]jsontext.Step{{Key: sf.Name, Fold: true}})
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		f.pointer, t = true, t.Elem()
	}
	kind, ok := gofield.KindOf(t)
	if _, isText := gofield.TextKind(t); isText || !ok { // encoding/json reads these
		return f
	}
	schema, err := row.NewSchema(row.Field{Name: sf.Name, Kind: kind, Nullable: f.pointer, Format: sf.Tag.Get("format"), Hidden: d.hides})
	if f.flat = err == nil; f.flat {
		f.field = *schema.Field(0)
	}
	return f
}

func (d *documentReader[T]) source() any { return componentOf(d.r) }

func (d *documentReader[T]) Meta() Meta {
	if d.meta == nil {
		return Meta{}
	}
	return d.meta.Meta()
}

func (d *documentReader[T]) Read(ctx context.Context) (item T, err error) {
	doc, err := d.r.ReadDocument(ctx)
	if err != nil {
		return item, err
	}
	if err := d.decode(doc, &item); err != nil {
		var zero T
		return zero, Consumed(d.Meta(), exception.InvalidItem("", exception.ClassParse, err))
	}
	return item, nil
}

// decode refuses null for a struct: encoding/json would return one with no field set.
func (d *documentReader[T]) decode(doc []byte, item *T) error {
	if err := d.find.Find(doc); err != nil {
		if d.hides {
			return withoutValues(err)
		}
		return jsontext.BadDocument(doc, err)
	}
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer {
		if bytes.Equal(bytes.TrimSpace(doc), []byte("null")) {
			return fmt.Errorf("null is not a %v", t)
		}
	}
	if err := d.unmarshal(doc, item); err != nil {
		return misfitIn(doc, err)
	}
	if d.from == nil {
		return nil
	}
	v := reflect.Indirect(reflect.ValueOf(item).Elem())
	for i := range d.from {
		f := &d.from[i]
		if err := d.set(f, v.Field(f.index)); err != nil {
			return fault.At(placeOf(v.Type().Field(f.index).Name, d.find, f.path), err)
		}
	}
	return nil
}

// set gives a field the value at its `from`; if there is none, the value of its own name, which
// encoding/json has set, stays.
func (d *documentReader[T]) set(f *fromField, dst reflect.Value) error {
	raw := d.find.Found[f.path]
	switch {
	case raw == nil && d.find.Found[f.name] != nil:
		return nil
	case raw != nil && !f.flat:
		return d.unmarshal(raw, dst.Addr().Interface())
	case !f.flat:
		return nil
	}
	value, err := jsonValue(&f.field, raw)
	if err != nil {
		return err
	}
	if value.IsNull() {
		dst.SetZero()
		return nil
	}
	if f.pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	if !gofield.Set(dst, value) {
		return gofield.Unfit(&f.field, value, dst)
	}
	return nil
}

func (d *documentReader[T]) unmarshal(doc []byte, to any) error {
	err := json.Unmarshal(doc, to)
	if err != nil && d.hides {
		return withoutValues(err)
	}
	return err
}

// misfitIn adds the place of a value that does not fit its field.
func misfitIn(doc []byte, err error) error {
	var misfit *json.UnmarshalTypeError
	if !errors.As(err, &misfit) || misfit.Field == "" {
		return err
	}
	find := jsontext.NewFinder()
	i := find.AddName(misfit.Field)
	if find.Locate(doc) != nil {
		return fault.At(fault.Place{Field: misfit.Field}, err)
	}
	return fault.At(placeOf(misfit.Field, find, i), err)
}

// withoutValues describes the error in a document without quoting it.
func withoutValues(err error) error {
	var misfit *json.UnmarshalTypeError
	var strict *jsontext.StrictError
	var syntax *jsontext.SyntaxError
	switch {
	case errors.As(err, &misfit) && misfit.Field != "":
		return fault.Named(misfit.Field, "the value does not fit a %v", misfit.Type)
	case errors.As(err, &strict):
		return strict
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON (byte %d)", syntax.Offset+1)
	}
	return errors.New("the document does not fit; the reason is not shown because items have redacted fields")
}
