package bind

import (
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func (b *Binding) decodeNested(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	u, known := b.Use.Nested[n]
	var cfg any
	switch {
	case known && u == nil: // reported at load
		d.Reported()
		return
	case known:
		inner := &Binding{File: b.File, Use: u, Collector: b.Collector, Types: b.Types, values: b.values, Env: b.Env, Lenient: b.Lenient}
		var ok bool
		if cfg, ok = inner.decodeConfig(); !ok {
			d.Reported()
		}
		b.incomplete = b.incomplete || inner.incomplete
	case b.Resolve == nil:
		return
	default:
		if u = b.declareNested(d, n, f); u == nil {
			d.Reported()
			return
		}
		if cfg = u.Cfg; !u.Valid {
			d.Reported()
		}
	}
	v.Set(reflect.ValueOf(registry.Nested{
		Component: u.Component, Config: cfg,
		Locate: func(err error) error { return &tree.NestedError{Use: u, Err: err} },
		Checked: func(in, out item.Type) {
			if b.Resolve != nil { // at load
				u.In, u.Out = in, out
			}
		},
	}))
}

func (b *Binding) decodeConfig() (cfg any, ok bool) {
	if b.Use.Component.Config == nil {
		return nil, true
	}
	return b.Decode()
}

func (b *Binding) declareNested(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) *tree.ComponentUse {
	b.Use.Nested[n] = nil
	ref, ok := language.ReadRef(d, n, f)
	if !ok || f.Given != "" && !b.give(ref, f) {
		return nil
	}
	u := b.Resolve(language.KindOf(f), ref)
	if u == nil {
		return nil
	}
	u.Given, u.AtOpen = f.Given, f.AtOpen
	b.Use.Nested[n], b.Use.Inner = u, append(b.Use.Inner, u)
	return u
}

const givenText = "/given"

func (b *Binding) give(ref *language.ComponentRef, f yamlfile.Field) bool {
	component, found := b.Types.Reg.Component(language.KindOf(f), ref.Name)
	if !found {
		return true // resolve reports it
	}
	hint := "a reader of files, such as csv, has it"
	if component.Config == nil {
		b.Collector.Add(ref.At, fmt.Sprintf("%s: %s has no key %s, which %s gives it", f.Key, ref.Name, f.Given, b.Use.Component.Name), hint)
		return false
	}
	key, has := yamlfile.FieldsOf(component.Config).Find(f.Given)
	if !has || key.Type.Kind() != reflect.String {
		b.Collector.Add(ref.At, fmt.Sprintf("%s: %s has no key %s, which %s gives it", f.Key, ref.Name, f.Given, b.Use.Component.Name), hint)
		return false
	}
	node := ref.At.Beside(yamlfile.Map)
	if ref.Node != nil {
		at := ref.Node.Get(f.Given)
		if key.Main && ref.Node.Kind == yamlfile.Scalar {
			at = ref.Node
		}
		if at != nil {
			b.Collector.Add(at, fmt.Sprintf("%s: %s gives the %s to its %s", f.Key, b.Use.Component.Name, f.Given, f.Kind), "leave it out")
			return false
		}
		copied := *ref.Node
		node = &copied
	}
	if node.Kind == yamlfile.Map {
		entry := yamlfile.Entry{Key: ref.At.WithText(f.Given), Value: ref.At.WithText(givenText)}
		node.Entries = append(append([]yamlfile.Entry(nil), node.Entries...), entry)
	}
	ref.Node = node
	return true
}
