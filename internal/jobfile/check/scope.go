package check

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type location struct {
	element    *tree.Element
	step       string
	ownNumbers bool
	part       map[string]expression.Var
	unknown    bool
	beforeFlow bool
	config     bool
	afterFlow  bool
}

func (p location) knowsOutcome() bool {
	return p.afterFlow || p.element != nil && p.element.List.Finally
}

func (p location) refusal(path string) string {
	head, rest, _ := strings.Cut(path, ".")
	switch {
	case head == "secret" && !p.config:
		return path + " can be used only in the config of a component, since this text is stored and shown: write ${" + path + "} there"
	case head == "with":
		return path + " is only known in the steps of a template, as ${" + path + "}"
	case head == "job" && slices.Contains(language.OutcomeNames(), rest) && !p.knowsOutcome():
		return path + " is only known in finally and in the expect of the job"
	case head == "part" && p.part == nil && !p.unknown:
		return path + " is only known in the components of a step with partition"
	}
	return ""
}

type scopes struct {
	*checker
	stepNames       []string
	isStep          map[string]bool // the same
	invalidTasklets []string
	stepRefs        []stepRef
	brokenUses      bool
}

type stepRef struct {
	node     *yamlfile.Node
	offset   int
	step     string
	location location
}

func (l *scopes) scope(p location) *template.Names {
	text := expression.Var{Type: reflect.TypeFor[string]()}
	job := map[string]expression.Var{"name": text, "execution": {Type: reflect.TypeFor[int64]()}, "instance": {Type: reflect.TypeFor[int64]()}, "time": {Type: reflect.TypeFor[time.Time]()}}
	for _, name := range language.OutcomeNames() {
		job[name] = text
	}
	scope := expression.Scope{
		"params":  {Fields: l.paramVars()},
		"job":     {Fields: job},
		"env":     {Open: true},
		"steps":   l.stepVars(p.step),
		"context": {Open: true, Nullable: true},
		"part":    {Open: true},
	}
	if p.part != nil {
		scope["part"] = expression.Var{Fields: p.part}
	}
	if p.ownNumbers {
		for name, v := range l.ownVars(p.step) {
			scope[name] = v
		}
	}
	l.file.Clock.AddTo(scope)
	for _, name := range []string{"with", "secret"} {
		scope[name] = expression.Var{Open: true}
	}
	refusal := func(path string) string {
		if name, is := strings.CutPrefix(path, "params."); is && !p.config && l.file.IsSecret(name) {
			return path + " is secret and can be used only in the config of a component, since this text is stored and shown"
		}
		return p.refusal(path)
	}
	return &template.Names{Scope: scope, Refusal: refusal, Unknown: l.unknown(p), Steps: func(c *yamlfile.Collector, n *yamlfile.Node, offset int, step string) {
		l.stepRefs = append(l.stepRefs, stepRef{node: n, offset: offset, step: step, location: p})
	}}
}

func (l *scopes) unknown(p location) []string {
	var list []string
	if p.unknown {
		list = append(list, "part.")
	}
	if l.brokenUses {
		list = append(list, "steps.")
	}
	for _, name := range l.invalidTasklets {
		list = append(list, "steps."+name+".out.")
		if p.ownNumbers && p.step == name {
			list = append(list, "out.")
		}
	}
	return list
}

func (l *scopes) paramVars() map[string]expression.Var {
	vars := map[string]expression.Var{}
	for _, p := range l.file.Specs {
		vars[p.Name] = expression.Var{Type: template.GoType(p.Type), Nullable: !p.Required && p.Default == nil}
	}
	return vars
}

// stepVars makes each step on demand: all of them at each location would take quadratic time.
func (l *scopes) stepVars(except string) expression.Var {
	return expression.Var{
		Find: func(name string) (expression.Var, bool) {
			if name == except || !l.isStep[name] {
				return expression.Var{}, false
			}
			fields := l.ownVars(name)
			fields["status"] = expression.Var{Type: reflect.TypeFor[string]()}
			return expression.Var{Fields: fields}, true
		},
		Names: func() []string {
			return slices.DeleteFunc(slices.Clone(l.stepNames), func(name string) bool { return name == except })
		},
	}
}

func (l *scopes) ownVars(step string) map[string]expression.Var {
	fields := map[string]expression.Var{
		language.BalancedName: {Type: reflect.TypeFor[bool]()},
		"duration":            {Type: reflect.TypeFor[time.Duration]()},
		"exit":                {Type: reflect.TypeFor[string]()},
		"out":                 outVar(l.file, step),
	}
	for _, f := range language.StepNumbers() {
		fields[f] = expression.Var{Type: reflect.TypeFor[int64]()}
	}
	return fields
}

func outVar(f *tree.File, step string) expression.Var {
	schema := f.Outs[step]
	if schema == nil {
		return expression.Var{Open: true}
	}
	fields := map[string]expression.Var{}
	for _, field := range schema.Fields() {
		fields[field.Name] = expression.Var{Type: expression.GoType(field.Kind), Nullable: field.Nullable}
	}
	return expression.Var{Fields: fields}
}

func (l *scopes) env(p location) registry.ExpressionEnv {
	params := map[string]reflect.Type{}
	for name, v := range l.paramVars() {
		if l.file.IsSecret(name) { // rows would show it
			continue
		}
		params[name] = v.Type
		if v.Nullable {
			params[name] = reflect.PointerTo(v.Type)
		}
	}
	env := registry.ExpressionEnv{Zone: l.file.Clock.Zone, Calendars: l.file.Clock.Calendars, Types: map[string]map[string]reflect.Type{
		"params": params,
		// job.execution is not among them: the rows of a restart would differ.
		"job": {"name": reflect.TypeFor[string](), "instance": reflect.TypeFor[int64](), "time": reflect.TypeFor[time.Time]()},
	}}
	if p.part != nil {
		part := map[string]reflect.Type{}
		for name, v := range p.part {
			part[name] = v.Type
		}
		env.Types["part"] = part
	}
	return env
}

func (l *scopes) condition(m *language.ConditionText, key string, p location) *tree.Condition {
	if m == nil {
		return nil
	}
	prog, err := l.scope(p).Compile(l.problems, m.Node, m.Text, 0, key+": ")
	switch {
	case err != nil:
		return nil // reported
	case prog.Type() != reflect.TypeFor[bool]():
		l.problems.Add(m.Node, fmt.Sprintf("%s takes a bool, and this is %s", key, template.TypeName(prog.Type())), "a comparison such as steps.load.skipped > 10 is one")
		return nil
	case prog.Nullable():
		l.problems.Add(m.Node, key+" may be null", "give it a value for that case: "+m.Text+" ?? false")
		return nil
	}
	return &tree.Condition{Text: m.Text, Node: m.Node, Prog: prog, OwnNumbers: p.ownNumbers}
}

func (l *scopes) resolve(kind registry.Kind, ref *language.ComponentRef, at location) *tree.ComponentUse {
	if ref == nil {
		return nil
	}
	component, ok := l.reg.Component(kind, ref.Name)
	if !ok {
		l.unknownComponent(kind, ref)
		return nil
	}
	u := &tree.ComponentUse{
		Kind: kind, Component: component, Ref: ref, What: string(kind) + " " + ref.Name,
		Node: ref.Node, Late: map[*yamlfile.Node]*template.LateValue{}, Nested: map[*yamlfile.Node]*tree.ComponentUse{}, Env: l.env(at),
	}
	if u.Node == nil {
		u.Node = ref.At.Beside(yamlfile.Map)
	}
	if component.Config == nil {
		u.Valid = true
		if ref.Node != nil && (ref.Node.Kind != yamlfile.Map || len(ref.Node.Entries) > 0) {
			u.Valid = false
			l.problems.Add(ref.Node, u.What+" takes no config", "write just "+ref.Name)
		}
		return u
	}
	at.config = true
	b := &bind.Binding{File: l.file, Use: u, Collector: l.problems, Scope: l.scope(at), Types: &l.types, Env: u.Env, Lenient: l.lenient}
	b.Resolve = func(kind registry.Kind, ref *language.ComponentRef) *tree.ComponentUse {
		return l.resolve(kind, ref, at)
	}
	u.Cfg, u.Valid = b.Decode()
	return u
}

func (l *scopes) unknownComponent(kind registry.Kind, ref *language.ComponentRef) {
	if c, is := contrib.Find(kind, ref.Name); is {
		l.problems.AddLacking(ref.At, c.Family, c.Lacks(), contrib.Cure(c.Family))
		return
	}
	hint := yamlfile.Suggest(ref.Name, l.reg.Names(kind))
	for _, other := range registry.Kinds() {
		if _, ok := l.reg.Component(other, ref.Name); ok && other != kind {
			hint = "there is a " + string(other) + " of this name; " + hint
		}
	}
	l.problems.Add(ref.At, "there is no "+string(kind)+" "+ref.Name, hint)
}

func checkSyntax(u *tree.ComponentUse, c *yamlfile.Collector) {
	if u == nil {
		return
	}
	for _, n := range u.Expressions {
		var syntax *expression.Error
		if errors.As(expression.CheckSyntax(n.Text), &syntax) {
			c.AddAt(n, syntax.Offset, u.What+": "+syntax.Error(), template.ExpressionHint(n, syntax))
		}
	}
}
