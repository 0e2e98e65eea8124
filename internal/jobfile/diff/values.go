package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func configTexts(f *tree.File, u *tree.ComponentUse, params core.Parameters, counts func(yamlfile.Field) bool) map[string]string {
	texts := map[string]string{}
	if u.Component.Config == nil {
		return texts
	}
	cfg := reflect.ValueOf(bind.Config(f, u, bind.Launch(f, params), f.Doc.NewCollector())).Elem()
	for _, field := range yamlfile.FieldsOf(u.Component.Config).Fields {
		if !counts(field) {
			continue
		}
		text := valueText(cfg.FieldByIndex(field.Index))
		if field.Key == "database" && text == `""` {
			text = fmt.Sprintf("%q", tx.Default)
		}
		at := tree.ValueOf(u.Node, field)
		if at != nil && lateAtStep(u, at) {
			text = nodeText(at)
		}
		texts[field.Key] = text
	}
	return texts
}

func lateAtStep(u *tree.ComponentUse, n *yamlfile.Node) bool {
	for _, one := range tree.WithNested(u) {
		if late := one.Late[n]; late != nil && late.AtStep {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, func(item *yamlfile.Node) bool { return lateAtStep(u, item) }) ||
		slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return lateAtStep(u, e.Value) })
}

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

const maxShown = 160

func shown(key, text string) string {
	return humanize.Clip(strings.TrimPrefix(secret.Line(key+": "+text), key+": "), maxShown)
}
