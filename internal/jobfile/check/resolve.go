package check

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

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
