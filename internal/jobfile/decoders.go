package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// modelDecoders decode the types of model.go that have their own forms.
func modelDecoders() map[reflect.Type]yamlfile.Form {
	return map[reflect.Type]yamlfile.Form{
		reflect.TypeFor[rawText]():        decodeRaw,
		reflect.TypeFor[componentRef]():   decodeRef,
		reflect.TypeFor[componentRefs]():  decodeRefs,
		reflect.TypeFor[nextModel]():      decodeNext,
		reflect.TypeFor[rowModel]():       decodeRow,
		reflect.TypeFor[elementModel]():   decodeElement,
		reflect.TypeFor[conditionText]():  decodeCondition,
		reflect.TypeFor[targetText]():     decodeTarget,
		reflect.TypeFor[itemsModel]():     decodeItems,
		reflect.TypeFor[anyValue]():       keepNode[anyValue],
		reflect.TypeFor[placementModel](): keepNode[placementModel],
		reflect.TypeFor[argumentLists]():  keepNode[argumentLists],
		reflect.TypeFor[templateSteps]():  keepNode[templateSteps],
		reflect.TypeFor[includeModel]():   keepNode[includeModel],
	}
}

// keepNode keeps the node for a later decoder.
func keepNode[T ~struct{ node *yamlfile.Node }](d *yamlfile.Decoder, n *yamlfile.Node, _ yamlfile.Field, v reflect.Value) {
	if n.Bad {
		d.Reported()
		return
	}
	v.Set(reflect.ValueOf(T{node: n}))
}

func decodeRaw(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if (n.Kind == yamlfile.Map || n.Kind == yamlfile.List) && !n.Bad {
		d.Add(n, f.Key+" takes a single value", `JSON stands in quotes: '{"a": [1, 2]}'`)
		return
	}
	if d.Expect(n, yamlfile.Scalar, f) {
		v.Set(reflect.ValueOf(rawText{node: n}))
	}
}

func decodeRow(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	fields := yamlfile.OrderedMap[fieldModel]{}
	d.Field(n, f, reflect.ValueOf(&fields).Elem())
	v.Set(reflect.ValueOf(rowModel(fields)))
}

func decodeRef(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if ref, ok := readRef(d, n, f); ok {
		v.Set(reflect.ValueOf(*ref))
	}
}

func readRef(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (*componentRef, bool) {
	const forms = "write the component's name, or {name: {its config}}"
	switch {
	case n.Bad:
	case n.Kind == yamlfile.Scalar && n.Empty:
		d.Add(n, fmt.Sprintf("%s names no component", f.Key), forms)
	case n.Kind == yamlfile.Scalar:
		return &componentRef{name: n.Text, at: n}, true
	case n.Kind == yamlfile.List:
		d.Add(n, fmt.Sprintf("%s takes one component, not a list", f.Key), forms)
	case len(n.Entries) == 0:
		d.Add(n, fmt.Sprintf("%s names no component", f.Key), forms)
	case len(n.Entries) > 1 && n.Entries[0].Key.Text == "type" && n.Entries[0].Value.Kind == yamlfile.Scalar:
		d.Add(n.Entries[0].Key, f.Key+" has its component as a key, not as a type", fmt.Sprintf("write {%s: {its config}}", n.Entries[0].Value.Text))
	case len(n.Entries) > 1:
		names := make([]string, len(n.Entries))
		for i, e := range n.Entries {
			names[i] = e.Key.Text
		}
		at, hint := n.Entries[1].Key, "the config of a component is indented below its name"
		for _, e := range n.Entries {
			if where := belongs(e.Key.Text, nil); where != "" {
				at, hint = e.Key, where
				break
			}
		}
		d.Add(at, fmt.Sprintf("%s takes one component, and here are %s", f.Key, strings.Join(names, ", ")), hint)
	default:
		e := n.Entries[0]
		if e.Key.Bad {
			return nil, false
		}
		ref := &componentRef{name: e.Key.Text, at: e.Key, node: e.Value}
		if e.Value.Kind == yamlfile.Scalar && e.Value.Empty {
			ref.node = nil
		}
		return ref, true
	}
	return nil, false
}

func decodeRefs(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	items := []*yamlfile.Node{n}
	if n.Kind == yamlfile.List {
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

// decodeItems reads a list of payloads, or a reader.
func decodeItems(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	items := itemsModel{node: n}
	switch {
	case n.Bad:
		return
	case n.Kind == yamlfile.List && len(n.Items) == 0:
		d.Add(n, f.Key+" is an empty list", "each of its values is the payload of a task")
	case n.Kind == yamlfile.List:
		items.list = n.Items
	default:
		ref, ok := readRef(d, n, f)
		if !ok {
			return
		}
		items.ref = ref
	}
	v.Set(reflect.ValueOf(items))
}

// decodeElement reads an element: its kind is the one key that names it.
func decodeElement(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if !d.Expect(n, yamlfile.Map, f) {
		return
	}
	var kinds []elementKind
	for _, e := range n.Entries {
		if !e.Key.Bad && isElementKind(e.Key.Text) {
			kinds = append(kinds, elementKind(e.Key.Text))
		}
	}
	switch {
	case len(kinds) > 1:
		second := n.KeyOf(string(kinds[1]))
		d.Add(second, fmt.Sprintf("an element is one thing, and here are %s and %s", kinds[0], kinds[1]), "make it two elements")
	case len(kinds) == 0 && (n.Get("chunk") != nil || n.Get("tasklet") != nil || n.Get("tasks") != nil):
		d.Add(n.Entries[0].Key, "this element has no `step`, which names it", "write - step: NAME")
	case len(kinds) == 0 && len(n.Entries) > 0:
		d.Add(n.Entries[0].Key, "an element has one key that says what it is: "+kindList(), yamlfile.Suggest(n.Entries[0].Key.Text, append(kindNames(), "use")))
	case len(kinds) == 0:
		d.Add(n, "an element has one key that says what it is: "+kindList(), "")
	case len(kinds) == 1:
		m := elementModel{kind: kinds[0], node: n}
		d.Field(n, yamlfile.Field{Key: m.kind.article()}, m.model())
		v.Set(reflect.ValueOf(m))
		return
	}
	v.Set(reflect.ValueOf(elementModel{node: n}))
}

func decodeCondition(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if bareExpression(d, n, f) {
		v.Set(reflect.ValueOf(conditionText{node: n, text: n.Text}))
	}
}

// bareExpression reports values that cannot be a bare expression.
func bareExpression(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) bool {
	if !d.Expect(n, yamlfile.Scalar, f) {
		return false
	}
	if strings.TrimSpace(n.Text) == "" {
		d.Add(n, f.Key+": the expression is empty", "")
		return false
	}
	return true
}

func decodeTarget(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if n.Kind == yamlfile.Map && !isTargetNode(n) && !n.Bad {
		d.Add(n, "a choice has one target, without patterns", targetHint)
		return
	}
	if t, ok := readTarget(d, n, f); ok {
		v.Set(reflect.ValueOf(targetText{node: n, target: t}))
	}
}

const targetHint = "an element, end, fail, stop, {end: {exit: CODE}}, {fail: {exit: CODE}} or {stop: {restart: ELEMENT, message: TEXT}}"

func reserved() []string { return []string{"end", "fail", "stop"} }

// decodeNext reads a target, or a map of patterns to targets.
func decodeNext(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	next := nextModel{node: n}
	if n.Kind != yamlfile.Map || isTargetNode(n) {
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
		if t, ok := readTarget(d, e.Value, yamlfile.Field{Key: "next " + e.Key.Text}); ok {
			next.cases = append(next.cases, nextCase{pattern: e.Key.Text, at: e.Key, target: t})
		}
	}
	v.Set(reflect.ValueOf(next))
}

// isTargetNode reports whether a map is {end|fail|stop: {...}}.
func isTargetNode(n *yamlfile.Node) bool {
	return len(n.Entries) == 1 && slices.Contains(reserved(), n.Entries[0].Key.Text) &&
		(n.Entries[0].Value.Kind == yamlfile.Map || n.Entries[0].Value.Empty)
}

func readTarget(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (target, bool) {
	if n.Bad {
		return target{}, false
	}
	if n.Kind != yamlfile.Map {
		if !d.Expect(n, yamlfile.Scalar, f) {
			return target{}, false
		}
		return target{name: n.Text, at: n}, true
	}
	if len(n.Entries) != 1 {
		d.Add(n, f.Key+" takes one target", targetHint)
		return target{}, false
	}
	var m targetModel
	if empty := n.Entries[0]; slices.Contains(reserved(), empty.Key.Text) && empty.Value.Kind == yamlfile.Scalar && empty.Value.Empty {
		return target{name: empty.Key.Text, at: empty.Key}, true
	}
	if !d.Decode(n, f.Key, reflect.ValueOf(&m).Elem()) {
		return target{}, false
	}
	t := target{name: n.Entries[0].Key.Text, at: n.Entries[0].Key}
	switch {
	case m.End != nil:
		t.exit = readExit(d, m.End)
	case m.Fail != nil:
		t.exit = readExit(d, m.Fail)
	case m.Stop != nil:
		t.restart, t.message, t.restartAt = m.Stop.Restart, m.Stop.Message, m.Stop.Node.Get("restart")
	}
	return t, true
}

// readExit reports an exit code that cannot be stored.
func readExit(d *yamlfile.Decoder, m *exitModel) string {
	if err := core.CheckExitCode(m.Exit); err != nil {
		d.Add(m.Node.Get("exit"), err.Error(), "")
	}
	return m.Exit
}

// matcherKind stands for error classes, which are not components, in `kind` tags.
const matcherKind = "matcher"

func kindOf(f yamlfile.Field) registry.Kind { return registry.Kind(f.Kind) }
