package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// modelForms decode the types of model.go that have forms of their own.
func modelForms() map[reflect.Type]strict.Form {
	return map[reflect.Type]strict.Form{
		reflect.TypeFor[rawText]():       rawForm,
		reflect.TypeFor[componentRef]():  refForm,
		reflect.TypeFor[componentRefs](): refsForm,
		reflect.TypeFor[nextModel]():     nextForm,
		reflect.TypeFor[rowModel]():      rowForm,
	}
}

func rawForm(d *strict.Decoder, n *strict.Node, f strict.Field, v reflect.Value) {
	if d.Expect(n, strict.Scalar, f) {
		v.Set(reflect.ValueOf(rawText{node: n}))
	}
}

func rowForm(d *strict.Decoder, n *strict.Node, f strict.Field, v reflect.Value) {
	fields := strict.OrderedMap[fieldModel]{}
	d.Field(n, f, reflect.ValueOf(&fields).Elem())
	v.Set(reflect.ValueOf(rowModel(fields)))
}

// refForm reads `name` or `{name: config}`.
func refForm(d *strict.Decoder, n *strict.Node, f strict.Field, v reflect.Value) {
	if ref, ok := readRef(d, n, f); ok {
		v.Set(reflect.ValueOf(*ref))
	}
}

func readRef(d *strict.Decoder, n *strict.Node, f strict.Field) (*componentRef, bool) {
	const forms = "write the component's name, or {name: {its config}}"
	switch {
	case n.Bad:
	case n.Kind == strict.Scalar && n.Empty:
		d.Add(n, fmt.Sprintf("%s names no component", f.Key), forms)
	case n.Kind == strict.Scalar:
		return &componentRef{name: n.Text, at: n}, true
	case n.Kind == strict.List:
		d.Add(n, fmt.Sprintf("%s takes one component, not a list", f.Key), forms)
	case len(n.Entries) == 0:
		d.Add(n, fmt.Sprintf("%s names no component", f.Key), forms)
	case len(n.Entries) > 1:
		names := make([]string, len(n.Entries))
		for i, e := range n.Entries {
			names[i] = e.Key.Text
		}
		d.Add(n.Entries[1].Key, fmt.Sprintf("%s takes one component, and here are %s", f.Key, strings.Join(names, ", ")),
			"the config of a component is indented below its name")
	default:
		e := n.Entries[0]
		if e.Key.Bad {
			return nil, false
		}
		ref := &componentRef{name: e.Key.Text, at: e.Key, node: e.Value}
		if e.Value.Kind == strict.Scalar && e.Value.Empty {
			ref.node = nil
		}
		return ref, true
	}
	return nil, false
}

func refsForm(d *strict.Decoder, n *strict.Node, f strict.Field, v reflect.Value) {
	items := []*strict.Node{n}
	if n.Kind == strict.List {
		items = n.Items
		if len(items) == 0 {
			d.Add(n, fmt.Sprintf("%s is an empty list", f.Key), "")
		}
	}
	refs := componentRefs{}
	for _, item := range items {
		if ref, ok := readRef(d, item, f); ok {
			refs = append(refs, ref)
		}
	}
	v.Set(reflect.ValueOf(refs))
}

// reserved are the targets that are no steps.
func reserved() []string { return []string{"end", "fail", "stop"} }

// nextForm reads a target, or a map of patterns to targets.
func nextForm(d *strict.Decoder, n *strict.Node, f strict.Field, v reflect.Value) {
	next := nextModel{node: n}
	if n.Kind != strict.Map || isTarget(n) {
		if t, ok := readTarget(d, n, f); ok {
			next.cases = []nextCase{{at: n, target: t}}
		}
		v.Set(reflect.ValueOf(next))
		return
	}
	for _, e := range n.Entries {
		if slices.Contains(reserved(), e.Key.Text) {
			d.Add(e.Key, fmt.Sprintf("%q is a target, not the pattern of an exit code", e.Key.Text), "write PATTERN: target, such as {FAILED: end}")
			continue
		}
		if e.Key.Text == "" {
			d.Add(e.Key, "the pattern of an exit code is missing", "write PATTERN: target, such as {FAILED: end}")
			continue
		}
		if t, ok := readTarget(d, e.Value, strict.Field{Key: "next " + e.Key.Text}); ok {
			next.cases = append(next.cases, nextCase{pattern: e.Key.Text, at: e.Key, target: t})
		}
	}
	v.Set(reflect.ValueOf(next))
}

// isTarget reports whether a map is {end|fail|stop: {...}}.
func isTarget(n *strict.Node) bool {
	return len(n.Entries) == 1 && slices.Contains(reserved(), n.Entries[0].Key.Text) &&
		(n.Entries[0].Value.Kind == strict.Map || n.Entries[0].Value.Empty)
}

func readTarget(d *strict.Decoder, n *strict.Node, f strict.Field) (target, bool) {
	if n.Bad {
		return target{}, false
	}
	if n.Kind != strict.Map {
		if !d.Expect(n, strict.Scalar, f) {
			return target{}, false
		}
		return target{name: n.Text, at: n}, true
	}
	if len(n.Entries) != 1 {
		d.Add(n, f.Key+" takes one target", "a step, end, fail, stop, {end: {exit: CODE}}, {fail: {exit: CODE}} or {stop: {restart: STEP, message: TEXT}}")
		return target{}, false
	}
	var m targetModel
	if empty := n.Entries[0]; slices.Contains(reserved(), empty.Key.Text) && empty.Value.Kind == strict.Scalar && empty.Value.Empty {
		return target{name: empty.Key.Text, at: empty.Key}, true
	}
	if !d.Decode(n, f.Key, reflect.ValueOf(&m).Elem()) {
		return target{}, false
	}
	t := target{name: n.Entries[0].Key.Text, at: n.Entries[0].Key}
	switch {
	case m.End != nil:
		t.exit = m.End.Exit
	case m.Fail != nil:
		t.exit = m.Fail.Exit
	case m.Stop != nil:
		t.restart, t.message, t.restartAt = m.Stop.Restart, m.Stop.Message, m.Stop.Node.Get("restart")
	}
	return t, true
}

// matcherKind is the kind of the names of error classes, which are no components.
const matcherKind = "matcher"

// kindOf is the kind of component that a field names.
func kindOf(f strict.Field) core.ComponentKind { return core.ComponentKind(f.Kind) }
