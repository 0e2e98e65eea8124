package item

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jsontext"
)

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

// keyExpecter is a DocumentReader that receives the keys of its items, so that it finds a key that no
// document has before it delivers the first item (rule D9). Optional fields of a schema are excluded.
type keyExpecter interface {
	ExpectKeys(keys jsontext.WantedKeys)
}

// keyWatcher is a DocumentReader that handles keys that the item type does not have; a nil function
// ignores them. Its error is fatal.
type keyWatcher interface {
	UnknownKeys() func(path string) error
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

// expectFields collects the keys of t's fields that documents must have: all but the optional ones
// (`omitempty`, `omitzero`, `optional:"true"`).
func expectFields(keys *jsontext.WantedKeys, t reflect.Type, outer []jsontext.Step) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		inner := reflect.Type(nil)
		if sf.Type.Kind() == reflect.Struct {
			inner = structOf(sf.Type)
		}
		switch {
		case sf.Tag.Get("json") == "-" || sf.Tag.Get("batch") == "-" || sf.Tag.Get("optional") == "true" || mayLack(options):
		case sf.Anonymous && name == "":
			if inner != nil {
				expectFields(keys, inner, outer)
			}
		case !sf.IsExported():
		case hasFrom(sf) && outer == nil:
			keys.Add(sf.Name, sf.Tag.Get("from"))
		default:
			if name == "" {
				name = sf.Name
			}
			steps := append(slices.Clone(outer), jsontext.Step{Key: name, Fold: true})
			if inner != nil && inner.NumField() > 0 {
				expectFields(keys, inner, steps)
				continue
			}
			keys.Finder.AddPath(steps)
			keys.Fields = append(keys.Fields, sf.Name)
			keys.Names = append(keys.Names, pathText(steps))
		}
	}
}

// structOf returns the struct that t is or points to, if encoding/json decodes it field by field; nil
// otherwise.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := reflect.PointerTo(t)
	if t.Kind() != reflect.Struct || own.Implements(reflect.TypeFor[json.Unmarshaler]()) || own.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	return t
}

// hasFrom reports whether a field is found by its tag `from` in JSON.
func hasFrom(sf reflect.StructField) bool {
	name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
	return sf.IsExported() && sf.Tag.Get("from") != "" && name == ""
}

func mayLack(options string) bool {
	return slices.ContainsFunc(strings.Split(options, ","), func(o string) bool { return o == "omitempty" || o == "omitzero" })
}

func pathText(steps []jsontext.Step) string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Key
	}
	return strings.Join(names, ".")
}
