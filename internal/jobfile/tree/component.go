package tree

import (
	"reflect"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// ComponentUse is one use of a component in the file.
type ComponentUse struct {
	Kind      registry.Kind
	Component registry.Component
	Ref       *language.ComponentRef
	What      string         // "reader csv", for messages
	Node      *yamlfile.Node // the config; an empty map if there is none
	// Late are the values with ${...} in them, by their node.
	Late map[*yamlfile.Node]*template.LateValue
	// Cfg is the config as known at load: a pointer to component.Config.
	Cfg any
	// Valid says that the config has no mistake.
	Valid   bool
	In, Out item.Type
	// Nested are the components inside of the config, by the node of each, and inner the
	// same in the order of the file. given is the key that the component around it gives; atOpen
	// says that it is closed again when the component around it is open.
	Nested map[*yamlfile.Node]*ComponentUse
	Inner  []*ComponentUse
	Given  string
	AtOpen bool
	// Env is what its expressions over items may use, and expressions are their nodes.
	Env         registry.ExpressionEnv
	Expressions []*yamlfile.Node
}

// OutputType returns the type of the items that the component returns. A panic in it becomes an error, so
// that one component does not hide the other mistakes of the file.
func (u *ComponentUse) OutputType(in item.Type) (out item.Type, err error) {
	err = exception.Guard(func() (err error) {
		out, err = u.Component.Types(u.Cfg, in)
		return err
	})
	return out, err
}

// Database is the name in the component's `database` key; has reports whether it has such a key.
func (u *ComponentUse) Database() (name string, has bool) {
	if u == nil || u.Component.Config == nil || u.Cfg == nil {
		return "", false
	}
	f, ok := yamlfile.FieldsOf(u.Component.Config).Find("database")
	if !ok || f.Type.Kind() != reflect.String {
		return "", false
	}
	return reflect.ValueOf(u.Cfg).Elem().FieldByIndex(f.Index).String(), true
}

// A writer that refills its target removes the existing rows, once in its step (rule TW4): nothing else of
// the job may write there at the same time.

// Refills describes how the writer refills its target, or is empty if it does not.
func (u *ComponentUse) Refills() string {
	if u == nil || u.Kind != registry.KindWriter || u.Cfg == nil {
		return ""
	}
	if r, ok := u.Cfg.(registry.Refiller); ok {
		return r.Refills()
	}
	return ""
}

// KeyNode returns the node of a config key, or the component's node if the key is missing.
func (u *ComponentUse) KeyNode(key string) *yamlfile.Node {
	if u.Node.Kind == yamlfile.Map && u.Node.Get(key) != nil {
		return u.Node.KeyOf(key)
	}
	return u.Ref.At
}

// WithNested returns the components with those nested in their configs, each after its outer one. It leaves
// nil out.
func WithNested(uses ...*ComponentUse) []*ComponentUse {
	var list []*ComponentUse
	for _, u := range uses {
		if u != nil {
			list = append(append(list, u), WithNested(u.Inner...)...)
		}
	}
	return list
}

// NestedError is an error of a nested component: it is reported at its own position.
type NestedError struct {
	Use *ComponentUse
	Err error
}

func (e *NestedError) Error() string { return e.Use.What + ": " + e.Err.Error() }

// Condition is a checked bare expression of type bool.
type Condition struct {
	Text       string
	Node       *yamlfile.Node
	Prog       *expression.Program
	OwnNumbers bool
}
