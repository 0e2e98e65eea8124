package language

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Forms decode the types of model.go that have their own forms.
func Forms() map[reflect.Type]yamlfile.Form {
	return map[reflect.Type]yamlfile.Form{
		reflect.TypeFor[RawText]():       decodeRaw,
		reflect.TypeFor[ComponentRef]():  decodeRef,
		reflect.TypeFor[ComponentRefs](): decodeRefs,
		reflect.TypeFor[Next]():          decodeNext,
		reflect.TypeFor[Row]():           decodeRow,
		reflect.TypeFor[Element]():       decodeElement,
		reflect.TypeFor[ConditionText](): decodeCondition,
		reflect.TypeFor[TargetText]():    decodeTarget,
		reflect.TypeFor[Items]():         decodeItems,
		reflect.TypeFor[Workers]():       DecodeAuto,
		reflect.TypeFor[AnyValue]():      keepNode[AnyValue],
		reflect.TypeFor[Placement]():     keepNode[Placement],
		reflect.TypeFor[ArgumentLists](): keepNode[ArgumentLists],
		reflect.TypeFor[TemplateSteps](): keepNode[TemplateSteps],
		reflect.TypeFor[Include]():       keepNode[Include],
	}
}

// DecodeAuto decodes a number from 1, or the word auto, which is 0.
func DecodeAuto(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if n.Kind == yamlfile.Scalar && n.Text == "auto" {
		return
	}
	if _, err := strconv.Atoi(n.Text); err != nil && n.Kind == yamlfile.Scalar && !n.Empty && !n.Bad && !strings.Contains(n.Text, "${") {
		d.Add(n, fmt.Sprintf("%s: %q is not a number", f.Key, n.Text), "write a number, or auto")
		return
	}
	number, before := 1, d.Reports()
	d.Field(n, f, reflect.ValueOf(&number).Elem())
	if number < 1 && d.Reports() == before {
		d.Add(n, f.Key+" must be at least 1", "or auto")
	}
	v.SetInt(int64(number))
}

func keepNode[T ~struct{ Node *yamlfile.Node }](d *yamlfile.Decoder, n *yamlfile.Node, _ yamlfile.Field, v reflect.Value) {
	if n.Bad {
		d.Reported()
		return
	}
	v.Set(reflect.ValueOf(T{Node: n}))
}

func decodeRaw(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if (n.Kind == yamlfile.Map || n.Kind == yamlfile.List) && !n.Bad {
		d.Add(n, f.Key+" takes a single value", `JSON stands in quotes: '{"a": [1, 2]}'`)
		return
	}
	if d.Expect(n, yamlfile.Scalar, f) {
		v.Set(reflect.ValueOf(RawText{Node: n}))
	}
}

func decodeRow(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	fields := yamlfile.OrderedMap[Field]{}
	d.Field(n, f, reflect.ValueOf(&fields).Elem())
	v.Set(reflect.ValueOf(Row(fields)))
}

func decodeRef(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if ref, ok := ReadRef(d, n, f); ok {
		v.Set(reflect.ValueOf(*ref))
	}
}

// ReadRef reads a component: its name, or {name: config}.
func ReadRef(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (*ComponentRef, bool) {
	const forms = "write the component's name, or {name: {its config}}"
	switch {
	case n.Bad:
	case n.Kind == yamlfile.Scalar && n.Empty:
		d.Add(n, fmt.Sprintf("%s names no component", f.Key), forms)
	case n.Kind == yamlfile.Scalar:
		return &ComponentRef{Name: n.Text, At: n}, true
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
		ref := &ComponentRef{Name: e.Key.Text, At: e.Key, Node: e.Value}
		if e.Value.Kind == yamlfile.Scalar && e.Value.Empty {
			ref.Node = nil
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
	refs := ComponentRefs{}
	for _, item := range items {
		if ref, ok := ReadRef(d, item, f); ok {
			refs = append(refs, ref)
		}
	}
	v.Set(reflect.ValueOf(refs))
}

func decodeItems(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	items := Items{Node: n}
	switch {
	case n.Bad:
		return
	case n.Kind == yamlfile.List && len(n.Items) == 0:
		d.Add(n, f.Key+" is an empty list", "each of its values is the payload of a task")
	case n.Kind == yamlfile.List:
		items.List = n.Items
	default:
		ref, ok := ReadRef(d, n, f)
		if !ok {
			return
		}
		items.Ref = ref
	}
	v.Set(reflect.ValueOf(items))
}

func decodeElement(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if !d.Expect(n, yamlfile.Map, f) {
		return
	}
	var kinds []Kind
	for _, e := range n.Entries {
		if !e.Key.Bad && IsElementKind(e.Key.Text) {
			kinds = append(kinds, Kind(e.Key.Text))
		}
	}
	switch {
	case len(kinds) > 1:
		second := n.KeyOf(string(kinds[1]))
		d.Add(second, fmt.Sprintf("an element has one kind, and here are %s and %s", kinds[0], kinds[1]), "make it two elements")
	case len(kinds) == 0 && (n.Get("chunk") != nil || n.Get("tasklet") != nil || n.Get("tasks") != nil):
		d.Add(n.Entries[0].Key, "this element has no `step`, which names it", "write - step: NAME")
	case len(kinds) == 0 && len(n.Entries) > 0:
		d.Add(n.Entries[0].Key, "an element needs one key that names its kind: "+KindList(), yamlfile.Suggest(n.Entries[0].Key.Text, append(KindNames(), "use")))
	case len(kinds) == 0:
		d.Add(n, "an element needs one key that names its kind: "+KindList(), "")
	case len(kinds) == 1:
		m := Element{Kind: kinds[0], Node: n}
		d.Field(n, yamlfile.Field{Key: m.Kind.Article()}, m.Keys())
		v.Set(reflect.ValueOf(m))
		return
	}
	v.Set(reflect.ValueOf(Element{Node: n}))
}

func decodeCondition(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if BareExpression(d, n, f) {
		v.Set(reflect.ValueOf(ConditionText{Node: n, Text: n.Text}))
	}
}

// BareExpression reports values that cannot be a bare expression.
func BareExpression(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) bool {
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
	if n.Kind == yamlfile.Map && !IsTargetNode(n) && !n.Bad {
		d.Add(n, "a choice has one target, without patterns", targetHint)
		return
	}
	if t, ok := readTarget(d, n, f); ok {
		v.Set(reflect.ValueOf(TargetText{node: n, Target: t}))
	}
}

const targetHint = "an element, end, fail, stop, {end: {exit: CODE}}, {fail: {exit: CODE}} or {stop: {restart: ELEMENT, message: TEXT}}"

// Reserved are the targets that are not elements.
func Reserved() []string { return []string{"end", "fail", "stop"} }

func decodeNext(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	next := Next{Node: n}
	if n.Kind != yamlfile.Map || IsTargetNode(n) {
		if t, ok := readTarget(d, n, f); ok {
			next.Cases = []nextCase{{At: n, Target: t}}
		}
		v.Set(reflect.ValueOf(next))
		return
	}
	for _, e := range n.Entries {
		if slices.Contains(Reserved(), e.Key.Text) {
			d.Add(e.Key, fmt.Sprintf("%q is a target, not the pattern of an exit code", e.Key.Text), "write PATTERN: target, such as {FAILED: end}")
			continue
		}
		if e.Key.Text == "" {
			d.Add(e.Key, "the pattern of an exit code is missing", "write PATTERN: target, such as {FAILED: end}")
			continue
		}
		if t, ok := readTarget(d, e.Value, yamlfile.Field{Key: "next " + e.Key.Text}); ok {
			next.Cases = append(next.Cases, nextCase{Pattern: e.Key.Text, At: e.Key, Target: t})
		}
	}
	v.Set(reflect.ValueOf(next))
}

// IsTargetNode reports whether a map is {end|fail|stop: {...}}.
func IsTargetNode(n *yamlfile.Node) bool {
	return len(n.Entries) == 1 && slices.Contains(Reserved(), n.Entries[0].Key.Text) &&
		(n.Entries[0].Value.Kind == yamlfile.Map || n.Entries[0].Value.Empty)
}

func readTarget(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (Target, bool) {
	if n.Bad {
		return Target{}, false
	}
	if n.Kind != yamlfile.Map {
		if !d.Expect(n, yamlfile.Scalar, f) {
			return Target{}, false
		}
		return Target{Name: n.Text, At: n}, true
	}
	if len(n.Entries) != 1 {
		d.Add(n, f.Key+" takes one target", targetHint)
		return Target{}, false
	}
	var m LongTarget
	if empty := n.Entries[0]; slices.Contains(Reserved(), empty.Key.Text) && empty.Value.Kind == yamlfile.Scalar && empty.Value.Empty {
		return Target{Name: empty.Key.Text, At: empty.Key}, true
	}
	if !d.Decode(n, f.Key, reflect.ValueOf(&m).Elem()) {
		return Target{}, false
	}
	t := Target{Name: n.Entries[0].Key.Text, At: n.Entries[0].Key}
	switch {
	case m.End != nil:
		t.Exit = readExit(d, m.End)
	case m.Fail != nil:
		t.Exit = readExit(d, m.Fail)
	case m.Stop != nil:
		t.Restart, t.Message, t.RestartAt = m.Stop.Restart, m.Stop.Message, m.Stop.Node.Get("restart")
	}
	return t, true
}

func readExit(d *yamlfile.Decoder, m *Exit) string {
	if err := core.CheckExitCode(m.Exit); err != nil {
		d.Add(m.Node.Get("exit"), err.Error(), "")
	}
	return m.Exit
}

// MatcherKind stands for error classes in `kind` tags.
const MatcherKind = "matcher"

// KindOf is the kind of the components that a field takes.
func KindOf(f yamlfile.Field) registry.Kind { return registry.Kind(f.Kind) }
