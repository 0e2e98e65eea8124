package docs

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Schema returns the JSON Schema (2020-12) of job files, the same for the same registry.
func Schema(reg *registry.Registry) ([]byte, error) {
	b := &schemaBuilder{reg: reg, defs: object{}}
	root := b.structure(reflect.TypeFor[language.Job]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Surfin job file"
	root["$defs"] = b.defs
	return json.MarshalIndent(root, "", "  ")
}

type object = map[string]any

type schemaBuilder struct {
	reg  *registry.Registry
	defs object
	late bool // ${...} may stand for any value: in configs of components
}

func (b *schemaBuilder) structure(t reflect.Type) object {
	keys := yamlfile.FieldsOf(t)
	properties, required := object{}, []string{}
	s := object{"type": "object", "additionalProperties": false}
	for _, f := range keys.Fields {
		if f.Rest {
			s["additionalProperties"] = b.elem(f.Type)
			continue
		}
		properties[f.Key] = b.field(f)
		if f.Required {
			required = append(required, f.Key)
		}
	}
	s["properties"] = properties
	if len(required) > 0 {
		s["required"] = required
	}
	if keys.Ignore != "" {
		s["patternProperties"] = object{"^" + keys.Ignore: true}
	}
	if main, ok := keys.Main(); ok && !main.Rest {
		for _, f := range keys.Fields {
			if f.Required && f.Key != main.Key {
				return s // the main field alone is not enough
			}
		}
		return object{"anyOf": []any{b.value(main.Type, main), s}}
	}
	return s
}

func (b *schemaBuilder) elem(t reflect.Type) object {
	if t == reflect.TypeFor[registry.Expressions]() {
		return text()
	}
	return b.value(t.Elem(), yamlfile.Field{})
}

func (b *schemaBuilder) field(f yamlfile.Field) object {
	s := b.value(f.Type, f)
	if _, isRef := s["$ref"]; isRef {
		s = object{"allOf": []any{s}}
	}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	if f.HasDefault && f.Default != "" {
		s["default"] = typedDefault(f)
	}
	return s
}

func typedDefault(f yamlfile.Field) any {
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[registry.Size]():
	case t.Kind() == reflect.Bool:
		return f.Default == "true"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return textsOf(f.Default)
	case t.Kind() == reflect.Float64:
		if x, err := strconv.ParseFloat(f.Default, 64); err == nil {
			return x
		}
	default:
		if n, err := strconv.ParseInt(f.Default, 10, 64); err == nil && t.Kind() != reflect.String {
			return n
		}
	}
	return f.Default
}

func textsOf(list string) []string {
	texts := strings.Split(strings.Trim(list, "[]"), ",")
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	return texts
}

func (b *schemaBuilder) value(t reflect.Type, f yamlfile.Field) object {
	if s := b.special(t, f); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.value(t.Elem(), f)
	case reflect.Struct:
		return b.structure(t)
	case reflect.Slice:
		return object{"type": "array", "items": b.value(t.Elem(), f)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.value(t.Elem(), f)}
	case reflect.Bool:
		return b.orText(object{"type": "boolean"}, "true|false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return b.orText(object{"type": "integer"}, "-?(0|[1-9][0-9]*)")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return b.orText(object{"type": "integer", "minimum": 0}, "0|[1-9][0-9]*")
	case reflect.Float32, reflect.Float64:
		return b.orText(object{"type": "number"}, `[-+]?[0-9.]+([eE][-+]?[0-9]+)?`)
	default:
		switch {
		case f.Kind == language.MatcherKind:
			return b.class()
		case len(f.Enum) > 0:
			return b.orText(object{"enum": enumValues(f.Enum)}, "")
		}
		return text()
	}
}

func (b *schemaBuilder) special(t reflect.Type, f yamlfile.Field) object {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return b.orText(nil, `-?([0-9.]+(ns|us|µs|ms|s|m|h))+`)
	case reflect.TypeFor[registry.Size]():
		return b.orText(object{"type": "integer", "minimum": 0}, `[0-9]+(KB|MB|GB)?`)
	case reflect.TypeFor[partcount.Number]():
		return b.orText(object{"type": "integer", "minimum": 1}, "auto|[1-9][0-9]*")
	case reflect.TypeFor[registry.JSON]():
		return object{}
	case reflect.TypeFor[registry.SQL](), reflect.TypeFor[registry.Expression](), reflect.TypeFor[language.RawText](), reflect.TypeFor[language.ConditionText]():
		return text()
	case reflect.TypeFor[language.Element]():
		return b.element()
	case reflect.TypeFor[language.TargetText]():
		return b.target()
	case reflect.TypeFor[registry.Expressions]():
		return object{"type": "object", "additionalProperties": text()}
	case reflect.TypeFor[item.Type]():
		return object{"anyOf": []any{text(), b.rowType()}}
	case reflect.TypeFor[language.Row]():
		return b.rowType()
	case reflect.TypeFor[language.ComponentRef](), reflect.TypeFor[registry.Nested]():
		return b.components(language.KindOf(f))
	case reflect.TypeFor[language.ComponentRefs]():
		one := b.components(language.KindOf(f))
		return object{"anyOf": []any{one, object{"type": "array", "minItems": 1, "items": one}}}
	case reflect.TypeFor[language.Items]():
		return object{"anyOf": []any{object{"type": "array", "minItems": 1}, b.components(language.KindOf(f))}}
	case reflect.TypeFor[language.Workers]():
		return object{"anyOf": []any{object{"const": "auto"}, object{"type": "integer", "minimum": 1}}}
	case reflect.TypeFor[language.Placement]():
		one := object{"anyOf": []any{object{"type": "string", "minLength": 1}, object{"type": "object", "minProperties": 1, "additionalProperties": text()}}}
		return object{"anyOf": []any{one, object{"type": "array", "minItems": 1, "items": one}}}
	case reflect.TypeFor[language.AnyValue]():
		return object{}
	case reflect.TypeFor[language.Include]():
		path := object{"type": "string", "minLength": 1}
		return object{"anyOf": []any{path, object{"type": "array", "minItems": 1, "items": path}}}
	case reflect.TypeFor[language.ArgumentLists]():
		return object{"anyOf": []any{object{"type": "string", "pattern": `^\$\{`}, object{"type": "array", "minItems": 1, "items": object{"type": "object"}}}}
	case reflect.TypeFor[language.TemplateSteps](): // ${with.NAME} may stand for any value
		return object{"type": "array", "minItems": 1, "items": object{"type": "object"}}
	case reflect.TypeFor[language.Next]():
		return b.next()
	}
	if m, ok := reflect.Zero(t).Interface().(interface{ Elem() reflect.Type }); ok {
		return object{"type": "object", "additionalProperties": b.value(m.Elem(), yamlfile.Field{})}
	}
	return nil
}

func text() object { return object{"type": []string{"string", "number", "boolean", "null"}} }

func (b *schemaBuilder) orText(s object, pattern string) object {
	var alternatives, patterns []any
	if s != nil {
		alternatives = append(alternatives, s)
	}
	if pattern != "" {
		patterns = append(patterns, "^("+pattern+")$")
	}
	if b.late {
		patterns = append(patterns, `\$\{`)
	}
	for _, p := range patterns {
		alternatives = append(alternatives, object{"type": "string", "pattern": p})
	}
	if len(alternatives) == 1 {
		return alternatives[0].(object)
	}
	return object{"anyOf": alternatives}
}

func (b *schemaBuilder) class() object {
	if _, ok := b.defs["class"]; !ok {
		names, families := []string{}, []string{}
		for _, m := range b.reg.Matchers().All() {
			if m.New != nil {
				families = append(families, m.Name)
			}
			if b.reg.Matchers().Check(m.Name) == nil {
				names = append(names, m.Name)
			}
		}
		choices := []any{object{"enum": names}}
		if len(families) > 0 {
			choices = append(choices, object{"type": "string", "pattern": `^(` + strings.Join(families, "|") + `)\(.+\)$`})
		}
		b.defs["class"] = object{"anyOf": choices, "description": "A class of errors."}
	}
	return object{"$ref": "#/$defs/class"}
}

func (b *schemaBuilder) rowType() object {
	if _, ok := b.defs["row"]; !ok {
		late := b.late
		b.late = false
		b.defs["row"] = object{
			"type": "object", "minProperties": 1, "description": "A row type: its fields in order.",
			"additionalProperties": b.structure(reflect.TypeFor[language.Field]()),
		}
		b.late = late
	}
	return object{"$ref": "#/$defs/row"}
}

func (b *schemaBuilder) components(kind registry.Kind) object {
	name := string(kind)
	if _, ok := b.defs[name]; ok {
		return object{"$ref": "#/$defs/" + name}
	}
	b.defs[name] = object{} // components are inside of components
	defer func(late bool) { b.late = late }(b.late)
	b.late = true
	bare, choices := []string{}, []any{}
	for _, component := range b.reg.Components() {
		if component.Kind != kind {
			continue
		}
		config := object{"type": []string{"object", "null"}, "maxProperties": 0}
		if component.Config != nil {
			config = b.structure(component.Config)
		}
		if !needsConfig(component) {
			bare = append(bare, component.Name)
			config = object{"anyOf": []any{config, object{"type": "null"}}}
		}
		config["description"] = component.Summary
		def := name + "." + component.Name
		b.defs[def] = config
		choices = append(choices, choice(component.Name, object{"$ref": "#/$defs/" + pointer(def)}))
	}
	for _, c := range contrib.Missing(b.reg) {
		if c.Kind == kind {
			choices = append(choices, choice(c.Name, object{"description": c.Summary + " Note: " + c.Lacks() + ": " + contrib.Cure(c.Family)}))
		}
	}
	if len(bare) > 0 {
		choices = append([]any{object{"enum": bare}}, choices...)
	}
	b.defs[name] = object{"anyOf": choices}
	if len(choices) == 0 {
		b.defs[name] = object{"not": object{}, "description": "This application has no " + name + "."}
	}
	return object{"$ref": "#/$defs/" + name}
}

func choice(name string, config object) object {
	return object{"type": "object", "properties": object{name: config}, "required": []string{name}, "additionalProperties": false}
}

func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(name)
}

func needsConfig(c registry.Component) bool {
	if c.Config == nil {
		return false
	}
	for _, f := range yamlfile.FieldsOf(c.Config).Fields {
		if f.Required {
			return true
		}
	}
	return false
}

func (b *schemaBuilder) element() object {
	if _, ok := b.defs["element"]; !ok {
		b.defs["element"] = object{} // elements are inside of elements
		var choices []any
		for _, kind := range language.KindNames() {
			m := language.Element{Kind: language.Kind(kind)}
			choices = append(choices, b.structure(m.Keys().Type()))
		}
		choices = append(choices, b.structure(reflect.TypeFor[language.Use]()))
		b.defs["element"] = object{"anyOf": choices, "description": "An element of a flow: one of " + language.KindList() + "."}
	}
	return object{"$ref": "#/$defs/element"}
}

func (b *schemaBuilder) target() object {
	return object{"anyOf": []any{object{"type": "string"}, b.longTarget()}}
}

func (b *schemaBuilder) longTarget() object {
	long := b.structure(reflect.TypeFor[language.LongTarget]())
	long["maxProperties"], long["minProperties"] = 1, 1
	for name, s := range long["properties"].(object) {
		long["properties"].(object)[name] = object{"anyOf": []any{s, object{"type": "null"}}}
	}
	return long
}

func (b *schemaBuilder) next() object {
	patterns := object{
		"type": "object", "additionalProperties": b.target(), "minProperties": 1,
		"propertyNames": object{"not": object{"enum": language.Reserved()}},
	}
	return object{"anyOf": []any{object{"type": "string"}, b.longTarget(), patterns}}
}

func enumValues(texts []string) []any {
	var values []any
	for _, text := range texts {
		switch text {
		case "true", "false":
			values = append(values, text == "true")
		}
		values = append(values, text)
	}
	return values
}
