package expand

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type templateDef struct {
	name  string
	at    *yamlfile.Node
	args  []argumentDef
	steps *yamlfile.Node // nil means that it cannot be used, which was reported
}

type argumentDef struct {
	name  string
	model language.Argument
}

const (
	listArgument = "list"
	mapArgument  = "map"
)

func argumentTypes() []string {
	var names []string
	for _, t := range core.ParameterTypes() {
		names = append(names, string(t))
	}
	return append(names, listArgument, mapArgument)
}

func (t *templateDef) argument(name string) *argumentDef {
	for i := range t.args {
		if t.args[i].name == name {
			return &t.args[i]
		}
	}
	return nil
}

func (t *templateDef) argumentNames() []string {
	return language.NamesOf(t.args, func(a argumentDef) string { return a.name })
}

func (x *expander) declareTemplates(at *yamlfile.Node) {
	if at == nil {
		return
	}
	var models yamlfile.OrderedMap[language.Template]
	d := &yamlfile.Decoder{Collector: x.problems, Forms: language.Forms(), Meant: meantTemplate}
	d.Decode(at, templatesKey, reflect.ValueOf(&models).Elem())
	for _, m := range models {
		t := &templateDef{name: m.Name, at: m.Key}
		x.templates[t.name] = t
		x.names = append(x.names, t.name)
		if !language.Identifier.MatchString(t.name) {
			x.problems.Add(m.Key, fmt.Sprintf("the template name %q is not an identifier", t.name), language.IdentifierHint)
		}
		for _, a := range m.Value.With {
			x.declareArgument(t, a)
		}
		steps := m.Value.Steps.Node
		switch {
		case steps == nil || steps.Bad:
			continue
		case steps.Kind != yamlfile.List || len(steps.Items) == 0:
			x.problems.Add(steps, "the steps of a template are a list of elements", "write - in front of each: - step: NAME")
			continue
		}
		t.steps = steps
		x.checkMentions(t, steps)
	}
}

func meantTemplate(key string, in reflect.Type) (own, hint string) {
	switch in {
	case reflect.TypeFor[language.Template]():
		switch key {
		case "parameters", "params", "args", "arguments", "inputs":
			return "with", ""
		case "flow", "step", "elements":
			return "steps", ""
		}
	case reflect.TypeFor[language.Use]():
		switch key {
		case "parameters", "params", "args", "arguments":
			return "with", ""
		case "foreach", "each", "loop", "matrix":
			return "for_each", ""
		case "name", "prefix":
			return "as", ""
		case "steps", "flow", "do":
			return "", "a use has no elements of its own: declare them under `templates`, as the steps of a template"
		}
	}
	return "", ""
}

func (x *expander) declareArgument(t *templateDef, a yamlfile.Named[language.Argument]) {
	if !language.Identifier.MatchString(a.Name) {
		x.problems.Add(a.Key, fmt.Sprintf("the argument name %q is not an identifier", a.Name), language.IdentifierHint)
	}
	def := argumentDef{name: a.Name, model: a.Value}
	if m := a.Value; m.Type != "" && !slices.Contains(argumentTypes(), m.Type) {
		at := m.Node
		if at.Kind == yamlfile.Map {
			at = at.Get("type")
		}
		hint := yamlfile.Suggest(m.Type, argumentTypes())
		if cure := language.OtherKinds()[m.Type]; cure != "" {
			hint = "write " + cure
		}
		x.problems.Add(at, fmt.Sprintf("argument %s: %q is not a type", a.Name, m.Type), hint)
		def.model.Type = ""
	}
	if def.model.Default.Node != nil && !x.fitsArgument(&def, def.model.Default.Node) {
		def.model.Default.Node.Bad = true
	}
	t.args = append(t.args, def)
}

func (x *expander) fitsArgument(a *argumentDef, n *yamlfile.Node) bool {
	m := a.model
	switch {
	case n.Bad:
		return false
	case m.Type == "":
		return true
	case m.Type == listArgument || m.Type == mapArgument:
		want := yamlfile.Map
		if m.Type == listArgument {
			want = yamlfile.List
		}
		if n.Kind != want {
			x.problems.Add(n, fmt.Sprintf("%s takes %s, not %s", a.name, want, n.Kind), "its type is "+m.Type)
			return false
		}
		return true
	case n.Kind != yamlfile.Scalar || n.Empty:
		hint := "its type is " + m.Type
		if n.Kind != yamlfile.Scalar {
			hint += "; one that takes this has the type list or map"
		}
		x.problems.Add(n, fmt.Sprintf("%s takes %s of type %s", a.name, yamlfile.Scalar, m.Type), hint)
		return false
	case strings.Contains(n.Text, "${"):
		return true
	}
	spec := core.ParameterSpec{Type: core.ParameterType(m.Type), Zone: x.clock.Zone}
	if _, err := spec.Parse(n.Text); err != nil {
		x.problems.Add(n, a.name+": "+err.Error(), "its type is "+m.Type)
		return false
	}
	if len(m.Enum) > 0 && !slices.Contains(m.Enum, n.Text) {
		x.problems.Add(n, fmt.Sprintf("%s: %q is not allowed", a.name, n.Text), yamlfile.Suggest(n.Text, m.Enum))
		return false
	}
	return true
}

func (x *expander) arguments(t *templateDef, use *yamlfile.Node, given []yamlfile.Entry) (map[string]*yamlfile.Node, bool) {
	values, good := map[string]*yamlfile.Node{}, true
	for _, e := range given {
		a := t.argument(e.Key.Text)
		switch {
		case a == nil:
			x.problems.Add(e.Key, fmt.Sprintf("template %s has no argument %s", t.name, e.Key.Text), yamlfile.Suggest(e.Key.Text, t.argumentNames()))
			good = false
		case values[a.name] != nil:
			x.problems.Add(e.Key, fmt.Sprintf("the argument %s is in with and in for_each", a.name), "leave one of them out")
			good = false
		default:
			values[a.name] = e.Value
			good = x.fitsArgument(a, e.Value) && good
		}
	}
	for i := range t.args {
		a := &t.args[i]
		switch d := a.model.Default.Node; {
		case values[a.name] != nil:
		case d != nil && d.Bad:
			good = false
		case d != nil:
			values[a.name] = d
		case good:
			x.problems.Add(use, fmt.Sprintf("template %s needs the argument %s", t.name, a.name), fmt.Sprintf("its type is %s: with: {%s: ...}", a.model.Type, a.name))
			good = false
		}
	}
	return values, good
}

var (
	wholeMention = regexp.MustCompile(`^with\.([A-Za-z_][A-Za-z0-9_]*)$`)
	mention      = regexp.MustCompile(`(?:^|[^.A-Za-z0-9_])with\.([A-Za-z_][A-Za-z0-9_]*)`)
	innerMention = regexp.MustCompile(`\$\{\s*with\.([A-Za-z_][A-Za-z0-9_]*)\s*\}`)
)

func (x *expander) checkMentions(t *templateDef, n *yamlfile.Node) {
	for _, item := range n.Items {
		x.checkMentions(t, item)
	}
	for _, e := range n.Entries {
		x.checkMentions(t, e.Key)
		x.checkMentions(t, e.Value)
	}
	if n.Kind != yamlfile.Scalar || !strings.Contains(n.Text, "${") {
		return
	}
	parts, err := template.Parse(n.Text)
	if err != nil {
		return // reported where it is read
	}
	for _, h := range parts.Holes {
		for _, at := range mention.FindAllStringSubmatchIndex(h.Text, -1) {
			name := h.Text[at[2]:at[3]]
			if t.argument(name) != nil {
				continue
			}
			hint := yamlfile.Suggest(name, t.argumentNames())
			if len(t.args) == 0 {
				hint = fmt.Sprintf("declare it: with: {%s: string}", name)
			}
			x.problems.AddAt(n, h.Offset+at[2], fmt.Sprintf("template %s has no argument %s", t.name, name), hint)
			t.steps = nil
		}
	}
}

type instance struct {
	*expander
	template *templateDef
	use      *yamlfile.Use
	values   map[string]*yamlfile.Node
	failed   bool
}

func (i *instance) steps() *yamlfile.Node { return i.template.steps.Copy(i.use, i.fill) }

func (i *instance) fill(n *yamlfile.Node) *yamlfile.Node {
	if !strings.Contains(n.Text, "${") {
		return n
	}
	parts, err := template.Parse(n.Text)
	if err != nil {
		return n // reported where it is read
	}
	if m := wholeMention.FindStringSubmatch(firstHole(parts)); parts.Whole() && m != nil {
		return i.values[m[1]].Copy(i.use, nil)
	}
	var pieces []yamlfile.Piece
	changed, from := false, 0
	for _, h := range parts.Holes {
		end := template.Closing(n.Text, h.Begin+2) + 1
		pieces = append(pieces, yamlfile.Piece{Text: n.Text[from:h.Begin], Offset: from})
		from = end
		text, is := i.hole(n, h, n.Text[h.Begin:end])
		changed = changed || is
		pieces = append(pieces, yamlfile.Piece{Text: text, Offset: h.Begin, Pasted: is})
	}
	if !changed {
		return n
	}
	made := n.Replaced(append(pieces, yamlfile.Piece{Text: n.Text[from:], Offset: from}))
	if parts.Whole() && isNumber(made.Text) {
		return made.Unquoted()
	}
	return made
}

func isNumber(text string) bool {
	for _, t := range []core.ParameterType{core.TypeInt, core.TypeFloat, core.TypeBool} {
		if _, err := core.ParseParameter(t, text); err == nil {
			return true
		}
	}
	return false
}

func firstHole(t *template.Template) string {
	if len(t.Holes) == 0 {
		return ""
	}
	return t.Holes[0].Text
}

func (i *instance) hole(n *yamlfile.Node, h template.Hole, written string) (string, bool) {
	if m := wholeMention.FindStringSubmatch(h.Text); m != nil {
		return i.paste(n, h, m[1])
	}
	if innerMention.MatchString(h.Text) {
		return innerMention.ReplaceAllStringFunc(written, func(inner string) string {
			text, _ := i.paste(n, h, innerMention.FindStringSubmatch(inner)[1])
			return text
		}), true
	}
	if !mention.MatchString(h.Text) {
		return written, false
	}
	return i.compute(n, h)
}

func (i *instance) paste(n *yamlfile.Node, h template.Hole, name string) (string, bool) {
	value := i.values[name]
	if value.Kind == yamlfile.Scalar {
		return value.Text, true
	}
	i.problems.AddAt(n, h.Offset, fmt.Sprintf("the argument %s is %s, and this is a text", name, value.Kind), "it stands alone: key: ${with."+name+"}")
	i.failed = true
	return "", true
}

func (i *instance) compute(n *yamlfile.Node, h template.Hole) (string, bool) {
	fields, values := map[string]expression.Var{}, map[string]any{}
	var late []string
	for _, a := range i.template.args {
		value, t := i.values[a.name], core.ParameterType(a.model.Type)
		if value.Kind != yamlfile.Scalar || template.GoType(t) == nil {
			continue
		}
		fields[a.name] = expression.Var{Type: template.GoType(t)}
		if strings.Contains(value.Text, "${") {
			late = append(late, "with."+a.name)
			continue
		}
		spec := core.ParameterSpec{Type: t, Zone: i.clock.Zone}
		if x, err := spec.Parse(value.Text); err == nil { // fitsArgument reported it
			values[a.name] = x
		}
	}
	scope := expression.Scope{"with": {Fields: fields}}
	i.clock.AddTo(scope)
	in := &template.Names{Scope: scope, Refusal: func(path string) string {
		switch {
		case slices.Contains(late, path):
			return path + " is not known when the file is loaded: its value has a ${...}; as ${" + path + "} alone it is inserted unchanged"
		case !strings.HasPrefix(path, "with."):
			return "an expression over the arguments of a template can use no other names; ${with.NAME} alone is inserted unchanged, also in an expression"
		}
		return ""
	}}
	prog, err := template.CompileHole(i.problems, n, h, in)
	if err != nil {
		i.failed = true
		return "", true
	}
	x, err := prog.Eval(map[string]any{"with": values})
	if err != nil {
		i.problems.AddAt(n, h.Offset, fmt.Sprintf("${%s}: %v", h.Text, err), "")
		i.failed = true
		return "", true
	}
	return strings.ReplaceAll(template.Text(x), "${", "$${"), true
}
