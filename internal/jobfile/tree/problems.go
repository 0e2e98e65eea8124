package tree

import (
	"errors"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// ReportConfig reports a component's errors about its config: joined errors one by one, a
// *registry.ConfigError at its key, an error of an expression at its position in the text.
func (u *ComponentUse) ReportConfig(c *yamlfile.Collector, err error) {
	var joined interface{ Unwrap() []error }
	if _, single := err.(*registry.ConfigError); !single && errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			u.ReportConfig(c, e)
		}
		return
	}
	var inner *NestedError
	if errors.As(err, &inner) {
		inner.Use.ReportConfig(c, inner.Err)
		return
	}
	at, text := u.Ref.At, u.What+": "+err.Error()
	if direct, is := err.(*registry.ConfigError); is && u.Ref.Node != nil && u.Node.Kind != yamlfile.Map { // the file names no key
		text = u.What + ": " + direct.Err.Error()
	}
	var key *registry.ConfigError
	hint := ""
	if errors.As(err, &key) {
		at, hint = u.Find(key.Key), key.Hint
	}
	var syntax *expression.Error
	if errors.As(err, &syntax) && at.Kind == yamlfile.Scalar {
		c.AddAt(at, syntax.Offset, text, template.ExpressionHint(at, syntax))
		return
	}
	if key != nil && key.At > 0 && at.Kind == yamlfile.Scalar {
		c.AddAt(at, key.At-1, text, hint)
		return
	}
	c.Add(at, text, hint)
}

// Find returns the node of a key of the config. The key of a rest is not in the file, only its entries are.
func (u *ComponentUse) Find(key string) *yamlfile.Node {
	if u.Component.Config != nil && u.Node.Kind == yamlfile.List { // the short form of its main key
		if main, ok := yamlfile.FieldsOf(u.Component.Config).Main(); ok && strings.HasPrefix(key, main.Key+".") {
			return u.Node.Find(strings.TrimPrefix(key, main.Key+"."))
		}
	}
	if u.Component.Config == nil || u.Node.Kind != yamlfile.Map || len(u.Node.Entries) == 0 {
		if u.Ref.Node == nil {
			return u.Ref.At
		}
		return u.Node
	}
	if rest, ok := yamlfile.FieldsOf(u.Component.Config).Rest(); ok {
		key = strings.TrimPrefix(key, rest.Key+".")
	}
	if found := u.Node.Find(key); found != u.Node {
		return found
	}
	return u.Ref.At
}
