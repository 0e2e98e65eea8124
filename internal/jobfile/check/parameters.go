package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type parameters struct{ *checker }

func (l *parameters) declareParameters() {
	for _, e := range l.file.Model.Parameters {
		if !language.Identifier.MatchString(e.Name) {
			l.problems.Add(e.Key, fmt.Sprintf("the parameter name %q is not an identifier", e.Name), language.IdentifierHint)
		}
		l.file.Specs = append(l.file.Specs, l.parameter(e.Name, e.Value))
	}
}

func (l *parameters) parameter(name string, m language.Parameter) core.ParameterSpec {
	spec := core.ParameterSpec{Name: name, Type: core.ParameterType(m.Type), Doc: m.Doc, Identifying: m.Identifying, Pattern: m.Pattern}
	if spec.Doc == "" {
		spec.Doc = m.Description
	} else if m.Description != "" {
		l.problems.Add(m.Node.KeyOf("description"), "doc and description mean the same", "write one of them")
	}
	spec.Required = m.Default == nil
	if m.Required != nil {
		spec.Required = *m.Required
		if *m.Required && m.Default != nil {
			l.problems.Add(m.Node.KeyOf("required"), "a parameter with a default is never missing", "leave out required, or the default")
		}
	}
	if !slices.Contains(core.ParameterTypes(), spec.Type) {
		spec.Type = core.TypeString // a problem was reported; any type will do
		return spec
	}
	if spec.Type == core.TypeTimestamp && l.file.Clock.Zone != time.UTC {
		spec.Zone = l.file.Clock.Zone
	}
	if spec.Type == core.TypePath {
		spec.Folder = l.file.Folder
	}
	if m.Secret {
		l.secretParameter(&spec, m)
		return spec
	}
	l.limits(&spec, m)
	if m.Default != nil {
		l.setDefault(&spec, m.Default.Node)
	}
	return spec
}

// secretParameter makes the spec of a secret parameter. Keys that would put its value in the file or in the
// store are refused.
func (l *parameters) secretParameter(spec *core.ParameterSpec, m language.Parameter) {
	spec.Secret, spec.Required, spec.Identifying, spec.Pattern = true, true, false, ""
	if spec.Type != core.TypeString {
		l.problems.Add(m.Node.Get("type"), fmt.Sprintf("a secret parameter is a string, and no %s", spec.Type), "type: string")
		spec.Type = core.TypeString
	}
	for key, why := range map[string]string{
		"default": "has no default: the file is stored and shown", "enum": "has no enum: the file is stored and shown",
		"pattern": "has no pattern: a message about it would show the value", "required": "is required where a step uses it",
	} {
		if m.Node.Get(key) != nil {
			l.problems.Add(m.Node.KeyOf(key), "a secret parameter "+why, "leave it out; "+language.SecretParameterHint(spec.Name))
		}
	}
	if m.Node.Get("identifying") != nil && m.Identifying {
		l.problems.Add(m.Node.KeyOf("identifying"), "a secret parameter does not identify an instance: its value is not stored", "leave out identifying")
	}
}

func (l *parameters) limits(spec *core.ParameterSpec, m language.Parameter) {
	text := spec.Type == core.TypeString || spec.Type == core.TypePath
	if spec.Pattern != "" {
		_, err := regexp.Compile(spec.Pattern)
		switch {
		case err != nil:
			l.problems.Add(m.Node.Get("pattern"), "pattern: "+err.Error(), "")
			spec.Pattern = ""
		case !text:
			l.problems.Add(m.Node.KeyOf("pattern"), fmt.Sprintf("pattern is for string and path, not for %s", spec.Type), "")
			spec.Pattern = ""
		}
	}
	for i, value := range m.Enum {
		if x, ok := l.typed(spec, m.Node.Get("enum").Items[i], value); ok {
			spec.Enum = append(spec.Enum, template.Text(x))
		}
	}
	spec.Min = l.limit(spec, "min", m.Node, m.Min)
	spec.Max = l.limit(spec, "max", m.Node, m.Max)
	if spec.Min != nil && spec.Max != nil {
		if err := job.CheckParameter(core.ParameterSpec{Type: spec.Type, Max: spec.Max}, spec.Min); err != nil {
			l.problems.Add(m.Min.Node, "min is greater than max", "")
		}
	}
}

func (l *parameters) limit(spec *core.ParameterSpec, key string, at *yamlfile.Node, raw *language.RawText) any {
	if raw == nil || raw.Node == nil {
		return nil
	}
	if t := spec.Type; t == core.TypeString || t == core.TypePath || t == core.TypeBool {
		l.problems.Add(at.KeyOf(key), fmt.Sprintf("a %s has no %s", t, key), "")
		return nil
	}
	x, ok := l.typed(spec, raw.Node, raw.Node.Text)
	if !ok {
		return nil
	}
	return x
}

func (l *checker) typed(spec *core.ParameterSpec, at *yamlfile.Node, text string) (any, bool) {
	x, err := spec.Parse(text)
	if err != nil {
		l.problems.Add(at, err.Error(), "")
		return nil, false
	}
	return x, true
}

func (l *parameters) setDefault(spec *core.ParameterSpec, n *yamlfile.Node) {
	if n == nil {
		return
	}
	t, err := template.Parse(n.Text)
	if err != nil {
		template.Report(l.problems, n, "default", err)
		return
	}
	text := t.Literal()
	if len(t.Holes) > 0 {
		var ok bool
		if text, ok = l.computed(*spec, n, t); !ok {
			return
		}
		l.file.KeepComputed(*spec, t)
	}
	x, ok := l.typed(spec, n, text)
	if !ok {
		return
	}
	if err := job.CheckParameter(*spec, x); err != nil {
		l.problems.Add(n, "default: "+err.Error(), "")
		return
	}
	spec.Default, spec.FormerDefault = x, spec.Former(text, x)
}

func (l *parameters) computed(spec core.ParameterSpec, n *yamlfile.Node, t *template.Template) (string, bool) {
	scope := expression.Scope{
		expression.Today: {Type: template.GoType(core.TypeDate)}, expression.Now: {Type: template.GoType(core.TypeTimestamp)},
	}
	l.file.Clock.AddTo(scope)
	if strings.Contains(n.Text, "secret.") {
		scope["secret"] = expression.Var{Open: true} // for the refusal
	}
	vars := l.file.Clock.Values(l.now())
	refusal := func(path string) string {
		if name, is := strings.CutPrefix(path, "secret."); is {
			return fmt.Sprintf("%s cannot be a default, which is stored and shown: declare {type: string, secret: true} without a default, and %s", path, language.SecretParameterHint(name))
		}
		return ""
	}
	if !l.compileParameter(spec, n, t, &template.Names{Scope: scope, Refusal: refusal}) {
		return "", false
	}
	text, h, err := t.Evaluate(vars)
	if err != nil {
		l.problems.AddAt(n, h.Offset, fmt.Sprintf("${%s}: %v", h.Text, err), "")
		return "", false
	}
	return text, true
}

func (l *parameters) compileParameter(spec core.ParameterSpec, n *yamlfile.Node, t *template.Template, in *template.Names) bool {
	for i := range t.Holes {
		h := &t.Holes[i]
		prog, err := template.CompileHole(l.problems, n, *h, in)
		if err != nil {
			return false
		}
		if want := template.GoType(spec.Type); t.Whole() && (prog.Nullable() || !template.Fits(prog.Type(), want)) {
			l.problems.AddAt(n, h.Offset, fmt.Sprintf("a parameter of type %s takes %s, and ${%s} is %s", spec.Type, template.TypeName(want), h.Text, template.TypeName(prog.Type())), "")
			return false
		}
		h.Prog = prog
	}
	return true
}

func (l *checker) declareCalendars() {
	l.file.Clock.Calendars = map[string]*calendar.Calendar{}
	for _, e := range l.file.Model.Calendars {
		_, taken := calendar.Stock()[e.Name]
		switch {
		case !language.Identifier.MatchString(e.Name):
			l.problems.Add(e.Key, fmt.Sprintf("the calendar name %q is not an identifier", e.Name), language.IdentifierHint)
		case taken:
			l.problems.Add(e.Key, fmt.Sprintf("calendar %s is built in", e.Name), "give yours another name, with base: "+e.Name)
		default:
			if made := l.calendar(e.Name, e.Value); made != nil {
				l.file.Clock.Calendars[e.Name] = made
			}
		}
	}
}

func (l *checker) calendar(name string, m language.Calendar) *calendar.Calendar {
	before := l.problems.Reports()
	c := calendar.Config{Name: name}
	if m.Base != "" {
		all := calendar.Stock()
		maps.Copy(all, l.file.Clock.Calendars)
		if c.Base = all[m.Base]; c.Base == nil {
			l.problems.Add(m.Node.Get("base"), fmt.Sprintf("calendar %s is not declared above this one", m.Base), yamlfile.Suggest(m.Base, slices.Sorted(maps.Keys(all))))
		}
	}
	if m.Weekend != nil {
		c.Weekend = []time.Weekday{}
	}
	for i, text := range m.Weekend {
		day, ok := calendar.Weekday(text)
		if !ok {
			l.problems.Add(m.Node.Get("weekend").Items[i], fmt.Sprintf("weekend: %q is not a day of the week", text), "MON, TUE, WED, THU, FRI, SAT or SUN")
		}
		c.Weekend = append(c.Weekend, day)
	}
	for i, text := range m.Holidays {
		if day, ok := l.day(m.Node.Get("holidays").Items[i], "holidays", text); ok {
			c.Holidays = append(c.Holidays, day)
		}
	}
	if m.Until != "" {
		c.Until, _ = l.day(m.Node.Get("until"), "until", m.Until)
	}
	if l.problems.Reports() > before {
		return nil
	}
	made, err := calendar.New(c)
	if err != nil {
		l.problems.Add(m.Node.Get("weekend"), err.Error(), "leave a day out")
	}
	return made
}

func (l *checker) day(at *yamlfile.Node, key, text string) (row.Date, bool) {
	day, err := row.ParseDate(text)
	if err != nil {
		l.problems.Add(at, key+": "+err.Error(), "such as 2026-12-24")
	}
	return day, err == nil
}

func (l *checker) checkTimezone() {
	root := l.file.Doc.Root
	if err := l.readTimezone(); err != nil {
		l.problems.Add(root.Get("timezone"), "timezone: "+err.Error(), "such as Europe/Berlin")
	}
	l.checkPositive(root, "timeout", l.file.Model.Timeout)
}

// readTimezone: templates need the zone before the rest of the file.
func (l *checker) readTimezone() error {
	l.file.Clock.Zone = time.UTC
	at := l.file.Doc.Root.Get("timezone")
	if at == nil || at.Bad || at.Kind != yamlfile.Scalar || at.Empty || at.Text == "" {
		return nil
	}
	zone, err := schedule.LoadZone(at.Text)
	if err != nil {
		return err
	}
	l.file.Clock.Zone = zone
	return nil
}
