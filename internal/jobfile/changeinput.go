package jobfile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// inputChanges compares the input that committed work of an unfinished step depends on, and the location of
// that work.
func (c *comparison) inputChanges(old, now *stepDef) []Change {
	if old.child != nil {
		return c.childChanges(old, now)
	}
	if old.tasks != nil {
		return c.taskChanges(old, now)
	}
	changes := c.useChanges(old.name, "has planned its partitions", old.partitioner, now.partitioner, anyKey)
	for i := range changes {
		changes[i].Kept = "the partitions that are planned"
	}
	if old.partitioner == nil || c.hasCommittedParts(old) {
		changes = append(changes, c.useChanges(old.name, didCommit, old.reader, now.reader, anyKey)...)
		return append(changes, c.writerChanges(old, now)...)
	}
	return changes
}

// didCommit describes a step with committed reads and writes.
const didCommit = "has committed work"

// writerChanges compares where committed rows are: the writers and their targets. How they write may change.
func (c *comparison) writerChanges(old, now *stepDef) []Change {
	if len(old.writers) != len(now.writers) {
		return []Change{{
			Step: old.name, What: fmt.Sprintf("%s with %s, and has %s now", didCommit, writerCount(old), writerCount(now)), Refused: true,
			Place: c.place(now.element.model.node),
		}}
	}
	var changes []Change
	for i := range old.writers {
		counts := isTarget
		if old.writers[i].refills() != now.writers[i].refills() {
			counts = isTargetOrMode
		}
		changes = append(changes, c.useChanges(old.name, didCommit, old.writers[i], now.writers[i], counts)...)
	}
	return changes
}

func writerCount(s *stepDef) string {
	if len(s.writers) == 1 {
		return "1 writer"
	}
	return fmt.Sprintf("%d writers", len(s.writers))
}

func anyKey(yamlfile.Field) bool { return true }

// isTarget reports whether a key of a writer names its target: the main key of the short form, such as the
// path or the table, the database, and nested writers.
func isTarget(f yamlfile.Field) bool { return f.Main || f.Key == "database" || holdsNested(f.Type) }

// isTargetOrMode is isTarget for a writer that refills its target in one of its definitions (rule TW4): its
// committed rows are elsewhere, or would be removed.
func isTargetOrMode(f yamlfile.Field) bool { return isTarget(f) || f.Key == "mode" }

// useChanges compares the keys of a component that count. did describes the step's work with it.
func (c *comparison) useChanges(step, did string, old, now *componentUse, counts func(yamlfile.Field) bool) []Change {
	refused := func(at *yamlfile.Node, format string, args ...any) Change {
		return Change{Step: step, What: did + " with " + fmt.Sprintf(format, args...), Refused: true, Place: c.place(at)}
	}
	switch {
	case old == nil || now == nil: // then the kind is another, or both are
		return nil
	case old.component.Name != now.component.Name:
		return []Change{refused(now.ref.at, "the %s, and has the %s now", old.what, now.what)}
	}
	was, is := c.before.configTexts(old, c.params, counts), c.after.configTexts(now, c.params, counts)
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if was[key] != is[key] {
			changes = append(changes, refused(now.keyNode(key), "%s: %s %s, and it is %s now", old.what, key, shown(key, was[key]), shown(key, is[key])))
		}
	}
	return changes
}

// keyNode returns the node of a config key, or the component's node if the key is missing.
func (u *componentUse) keyNode(key string) *yamlfile.Node {
	if u.node.Kind == yamlfile.Map && u.node.Get(key) != nil {
		return u.node.KeyOf(key)
	}
	return u.ref.at
}

// maxShown is the maximum length of a value in a message, in characters.
const maxShown = 160

// shown is the value of a key in a message: shortened, and without a password.
func shown(key, text string) string {
	text = strings.TrimPrefix(secret.Line(key+": "+text), key+": ")
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown-1]) + "…"
	}
	return text
}

func (c *comparison) childChanges(old, now *stepDef) []Change {
	refused := func(format string, args ...any) Change {
		return Change{Step: old.name, What: "has started " + fmt.Sprintf(format, args...), Refused: true, Place: c.place(now.element.model.node)}
	}
	var changes []Change
	if was, is := old.child.model.File, now.child.model.File; was != is {
		changes = append(changes, refused("the job file %s, and it is %s now", was, is))
	}
	if a, b := old.child.file, now.child.file; a != nil && b != nil && a.name != b.name { // it is part of the child's instance
		changes = append(changes, refused("job %s, and it is %s now", a.name, b.name))
	}
	was, is := c.before.parameterTexts(old.child, c.params), c.after.parameterTexts(now.child, c.params)
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was[name] != is[name] {
			change := refused("it with the parameter %s %s, and it is %s now", name, shown(name, orNone(was[name])), shown(name, orNone(is[name])))
			change.Kept = "the parameters that it was started with"
			changes = append(changes, change)
		}
	}
	return changes
}

func orNone(text string) string {
	if text == "" {
		return "not given"
	}
	return text
}

// parameterTexts are the parameters of a child by name: the value if the launch knows
// it, else the expression.
func (f *fileDef) parameterTexts(child *childDef, params core.Parameters) map[string]string {
	texts, v := map[string]string{}, f.launchValues(params)
	for _, entry := range child.model.Parameters {
		n := entry.Value.node
		if n == nil {
			continue
		}
		texts[entry.Name] = n.Text
		for _, p := range child.parameters {
			if p.spec.Name != entry.Name || p.late.atStep {
				continue
			}
			p.spec.Type = core.TypeString // a path as it is written
			if text, given, err := f.childValue(v, p); err == nil && given {
				texts[entry.Name] = text
			}
		}
	}
	return texts
}

// configTexts are the keys of a config that count, with their values as texts, defaults
// included, as far as the launch knows them.
func (f *fileDef) configTexts(u *componentUse, params core.Parameters, counts func(yamlfile.Field) bool) map[string]string {
	texts := map[string]string{}
	if u.component.Config == nil {
		return texts
	}
	cfg := reflect.ValueOf(f.config(u, f.launchValues(params), f.doc.NewCollector())).Elem()
	for _, field := range yamlfile.FieldsOf(u.component.Config).Fields {
		if !counts(field) {
			continue
		}
		text := valueText(cfg.FieldByIndex(field.Index))
		if field.Key == "database" && text == `""` {
			text = fmt.Sprintf("%q", tx.Default)
		}
		at := u.node.Get(field.Key)
		if field.Main && u.node.Kind != yamlfile.Map {
			at = u.node
		}
		if at != nil && lateAtStep(u, at) {
			text = nodeText(at)
		}
		texts[field.Key] = text
	}
	return texts
}

func lateAtStep(u *componentUse, n *yamlfile.Node) bool {
	for _, one := range withNested(u) {
		if late := one.late[n]; late != nil && late.atStep {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, func(item *yamlfile.Node) bool { return lateAtStep(u, item) }) ||
		slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return lateAtStep(u, e.Value) })
}

// valueText returns equal texts for equal values of a config.
func valueText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case item.Type:
		if schema := x.Schema(); schema != nil {
			return schemaText(schema.Fields())
		}
		return x.GoType().String()
	case registry.SQL:
		return fmt.Sprintf("%q %v", x.String(), x.Args)
	case registry.Expression:
		return x.Text
	case registry.Nested:
		if x.Config == nil {
			return x.Component.Name
		}
		return x.Component.Name + ": " + valueText(reflect.ValueOf(x.Config))
	case string:
		return fmt.Sprintf("%q", x)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "none"
		}
		return valueText(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return "none"
		}
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				parts = append(parts, v.Type().Field(i).Name+": "+valueText(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, valueText(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
	}
	return fmt.Sprint(v.Interface())
}

// schemaText is a type of rows as a job file writes it.
func schemaText(fields []row.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + ": " + f.Type()
		var more []string
		add := func(is bool, format string, args ...any) {
			if is {
				more = append(more, fmt.Sprintf(format, args...))
			}
		}
		add(f.From != "" && f.From != f.Name, "from: %q", f.From)
		add(f.Format != "", "format: %q", f.Format)
		add(f.Zone != nil, "zone: %s", f.Zone)
		add(f.Nulls != nil, "null_if: %q", f.Nulls)
		add(f.Trues != nil, "true: %q", f.Trues)
		add(f.Falses != nil, "false: %q", f.Falses)
		add(!f.Default.IsNull(), "default: %q", f.Default)
		add(f.Coerce != row.CoerceError, "coerce: %s", f.Coerce)
		add(f.Exact, "exact: true")
		add(f.TrailingMinus, "trailing_minus: true")
		add(f.Optional, "optional: true")
		if len(more) > 0 {
			parts[i] = f.Name + ": {type: " + f.Type() + ", " + strings.Join(more, ", ") + "}"
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// nodeText is a value of the file, without its layout and with sorted keys.
func nodeText(n *yamlfile.Node) string {
	var parts []string
	switch n.Kind {
	case yamlfile.List:
		for _, item := range n.Items {
			parts = append(parts, nodeText(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yamlfile.Map:
		for _, e := range n.Entries {
			parts = append(parts, e.Key.Text+": "+nodeText(e.Value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case yamlfile.Scalar:
	}
	return fmt.Sprintf("%q", n.Text)
}
