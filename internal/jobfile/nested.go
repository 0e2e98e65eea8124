package jobfile

import (
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// nestedError is an error of a nested component: it is reported at its own position.
type nestedError struct {
	use *componentUse
	err error
}

func (e *nestedError) Error() string { return e.use.what + ": " + e.err.Error() }

// withNested returns the components with those nested in their configs, each after its outer one. It leaves
// nil out.
func withNested(uses ...*componentUse) []*componentUse {
	var list []*componentUse
	for _, u := range uses {
		if u != nil {
			list = append(append(list, u), withNested(u.inner...)...)
		}
	}
	return list
}

// decodeNested reads a component inside another one's config.
func (b *binding) decodeNested(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	u, known := b.use.nested[n]
	var cfg any
	switch {
	case known && u == nil: // reported at load
		d.Reported()
		return
	case known:
		inner := &binding{file: b.file, use: u, collector: b.collector, types: b.types, values: b.values, env: b.env, lenient: b.lenient}
		var ok bool
		if cfg, ok = inner.decodeConfig(); !ok {
			d.Reported()
		}
		b.incomplete = b.incomplete || inner.incomplete
	case b.resolve == nil:
		return
	default:
		if u = b.declareNested(d, n, f); u == nil {
			d.Reported()
			return
		}
		if cfg = u.cfg; !u.valid {
			d.Reported()
		}
	}
	v.Set(reflect.ValueOf(registry.Nested{
		Component: u.component, Config: cfg,
		Locate: func(err error) error { return &nestedError{use: u, err: err} },
		Checked: func(in, out item.Type) {
			if b.resolve != nil { // at load
				u.in, u.out = in, out
			}
		},
	}))
}

func (b *binding) decodeConfig() (cfg any, ok bool) {
	if b.use.component.Config == nil {
		return nil, true
	}
	return b.decode()
}

// declareNested resolves a nested component, once.
func (b *binding) declareNested(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) *componentUse {
	b.use.nested[n] = nil
	ref, ok := readRef(d, n, f)
	if !ok || f.Given != "" && !b.give(ref, f) {
		return nil
	}
	u := b.resolve(kindOf(f), ref)
	if u == nil {
		return nil
	}
	u.given, u.atOpen = f.Given, f.AtOpen
	b.use.nested[n], b.use.inner = u, append(b.use.inner, u)
	return u
}

// givenText stands for the value of a key that the outer component gives: an absolute path, which does not
// depend on the file's location.
const givenText = "/given"

// give adds the key that the outer component gives to the config.
func (b *binding) give(ref *componentRef, f yamlfile.Field) bool {
	component, found := b.types.reg.Component(kindOf(f), ref.name)
	if !found {
		return true // resolve reports it
	}
	hint := "a reader of files, such as csv, has it"
	if component.Config == nil {
		b.collector.Add(ref.at, fmt.Sprintf("%s: %s has no key %s, which %s gives it", f.Key, ref.name, f.Given, b.use.component.Name), hint)
		return false
	}
	key, has := yamlfile.FieldsOf(component.Config).Find(f.Given)
	if !has || key.Type.Kind() != reflect.String {
		b.collector.Add(ref.at, fmt.Sprintf("%s: %s has no key %s, which %s gives it", f.Key, ref.name, f.Given, b.use.component.Name), hint)
		return false
	}
	node := ref.at.Beside(yamlfile.Map)
	if ref.node != nil {
		at := ref.node.Get(f.Given)
		if key.Main && ref.node.Kind == yamlfile.Scalar {
			at = ref.node
		}
		if at != nil {
			b.collector.Add(at, fmt.Sprintf("%s: %s gives the %s to its %s", f.Key, b.use.component.Name, f.Given, f.Kind), "leave it out")
			return false
		}
		copied := *ref.node
		node = &copied
	}
	if node.Kind == yamlfile.Map {
		entry := yamlfile.Entry{Key: ref.at.WithText(f.Given), Value: ref.at.WithText(givenText)}
		node.Entries = append(append([]yamlfile.Entry(nil), node.Entries...), entry)
	}
	ref.node = node
	return true
}

// holdsNested reports whether a field of a config has components inside.
func holdsNested(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t == reflect.TypeFor[registry.Nested]() {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range yamlfile.FieldsOf(t).Fields {
		if holdsNested(f.Type) {
			return true
		}
	}
	return false
}

// positioned returns the first processor that has a position, or nil.
func (s *stepDef) positioned() *componentUse {
	for _, u := range s.processors {
		if u != nil && u.component.Positioned {
			return u
		}
	}
	return nil
}

// inTransaction returns the first processor that works in the chunk's transaction, or nil.
func (s *stepDef) inTransaction() *componentUse {
	for _, u := range s.processors {
		if u != nil && u.component.InTransaction {
			return u
		}
	}
	return nil
}
