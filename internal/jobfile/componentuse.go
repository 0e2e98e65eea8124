package jobfile

import (
	"errors"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// componentUse is one use of a component in the file.
type componentUse struct {
	kind      registry.Kind
	component registry.Component
	ref       *componentRef
	what      string         // "reader csv", for messages
	node      *yamlfile.Node // the config; an empty map if there is none
	// late are the values with ${...} in them, by their node.
	late map[*yamlfile.Node]*lateValue
	// cfg is the config as known at load: a pointer to component.Config.
	cfg any
	// valid says that the config has no mistake.
	valid   bool
	in, out item.Type
	// nested are the components inside of the config, by the node of each, and inner the
	// same in the order of the file. given is the key that the component around it gives; atOpen
	// says that it is closed again when the component around it is open.
	nested map[*yamlfile.Node]*componentUse
	inner  []*componentUse
	given  string
	atOpen bool
	// env is what its expressions over items may use, and expressions are their nodes.
	env         registry.ExpressionEnv
	expressions []*yamlfile.Node
}

// checkSyntax checks the expressions over items of an unknown type.
func (u *componentUse) checkSyntax(c *yamlfile.Collector) {
	if u == nil {
		return
	}
	for _, n := range u.expressions {
		var syntax *expression.Error
		if errors.As(expression.CheckSyntax(n.Text), &syntax) {
			c.AddAt(n, syntax.Offset, u.what+": "+syntax.Error(), expressionHint(n, syntax))
		}
	}
}

// lateValue is a text with compiled ${...}.
type lateValue struct {
	*template
	// atStep means that it needs more than the values known at launch.
	atStep bool
}

// resolve looks the component up and checks its config.
func (l *scopes) resolve(kind registry.Kind, ref *componentRef, at location) *componentUse {
	if ref == nil {
		return nil
	}
	component, ok := l.reg.Component(kind, ref.name)
	if !ok {
		l.unknownComponent(kind, ref)
		return nil
	}
	u := &componentUse{
		kind: kind, component: component, ref: ref, what: string(kind) + " " + ref.name,
		node: ref.node, late: map[*yamlfile.Node]*lateValue{}, nested: map[*yamlfile.Node]*componentUse{}, env: l.env(at),
	}
	if u.node == nil {
		u.node = ref.at.Beside(yamlfile.Map)
	}
	if component.Config == nil {
		u.valid = true
		if ref.node != nil && (ref.node.Kind != yamlfile.Map || len(ref.node.Entries) > 0) {
			u.valid = false
			l.problems.Add(ref.node, u.what+" takes no config", "write just "+ref.name)
		}
		return u
	}
	at.config = true
	b := &binding{file: l.file, use: u, collector: l.problems, scope: l.scope(at), types: &l.types, env: u.env, lenient: l.lenient}
	b.resolve = func(kind registry.Kind, ref *componentRef) *componentUse { return l.resolve(kind, ref, at) }
	u.cfg, u.valid = b.decode()
	return u
}

func (l *scopes) unknownComponent(kind registry.Kind, ref *componentRef) {
	hint := yamlfile.Suggest(ref.name, l.reg.Names(kind))
	for _, other := range registry.Kinds() {
		if _, ok := l.reg.Component(other, ref.name); ok && other != kind {
			hint = "there is a " + string(other) + " of this name; " + hint
		}
	}
	l.problems.Add(ref.at, "there is no "+string(kind)+" "+ref.name, hint)
}

// outputType returns the type of the items that the component returns. A panic in it becomes an error, so
// that one component does not hide the other mistakes of the file.
func (u *componentUse) outputType(in item.Type) (out item.Type, err error) {
	err = exception.Guard(func() (err error) {
		out, err = u.component.Types(u.cfg, in)
		return err
	})
	return out, err
}

// database is the name in the component's `database` key; has reports whether it has such a key.
func (u *componentUse) database() (name string, has bool) {
	if u == nil || u.component.Config == nil || u.cfg == nil {
		return "", false
	}
	f, ok := yamlfile.FieldsOf(u.component.Config).Find("database")
	if !ok || f.Type.Kind() != reflect.String {
		return "", false
	}
	return reflect.ValueOf(u.cfg).Elem().FieldByIndex(f.Index).String(), true
}

// components are all uses of components in the file, without its child jobs.
func (f *fileDef) components() []*componentUse {
	uses := slices.Clone(f.listeners)
	for _, s := range f.steps {
		uses = append(uses, s.components()...)
	}
	if f.flow != nil {
		f.flow.walk(func(e *elementDef) {
			if e.decider != nil {
				uses = append(uses, e.decider)
			}
		})
	}
	return uses
}
