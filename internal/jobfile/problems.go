package jobfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// identifier is the form of names.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// jobName is the form of a job's name.
var jobName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,99}$`)

const identifierHint = "letters, digits and _, not beginning with a digit"

// reportConfig reports a component's errors about its config: joined errors one by one, a
// *registry.ConfigError at its key, an error of an expression at its position in the text.
func (u *componentUse) reportConfig(c *yamlfile.Collector, err error) {
	var joined interface{ Unwrap() []error }
	if _, single := err.(*registry.ConfigError); !single && errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			u.reportConfig(c, e)
		}
		return
	}
	var inner *nestedError
	if errors.As(err, &inner) {
		inner.use.reportConfig(c, inner.err)
		return
	}
	at, text := u.ref.at, u.what+": "+err.Error()
	if direct, is := err.(*registry.ConfigError); is && u.ref.node != nil && u.node.Kind != yamlfile.Map { // the file names no key
		text = u.what + ": " + direct.Err.Error()
	}
	var key *registry.ConfigError
	hint := ""
	if errors.As(err, &key) {
		at, hint = u.find(key.Key), key.Hint
	}
	var syntax *expression.Error
	if errors.As(err, &syntax) && at.Kind == yamlfile.Scalar {
		c.AddAt(at, syntax.Offset, text, expressionHint(at, syntax))
		return
	}
	if key != nil && key.At > 0 && at.Kind == yamlfile.Scalar {
		c.AddAt(at, key.At-1, text, hint)
		return
	}
	c.Add(at, text, hint)
}

// find returns the node of a key of the config. The key of a rest is not in the file, only its entries are.
func (u *componentUse) find(key string) *yamlfile.Node {
	if u.component.Config != nil && u.node.Kind == yamlfile.List { // the short form of its main key
		if main, ok := yamlfile.FieldsOf(u.component.Config).Main(); ok && strings.HasPrefix(key, main.Key+".") {
			return u.node.Find(strings.TrimPrefix(key, main.Key+"."))
		}
	}
	if u.component.Config == nil || u.node.Kind != yamlfile.Map || len(u.node.Entries) == 0 {
		if u.ref.node == nil {
			return u.ref.at
		}
		return u.node
	}
	if rest, ok := yamlfile.FieldsOf(u.component.Config).Rest(); ok {
		key = strings.TrimPrefix(key, rest.Key+".")
	}
	if found := u.node.Find(key); found != u.node {
		return found
	}
	return u.ref.at
}

// expressionHint is the hint for an error of the expression in a node.
func expressionHint(n *yamlfile.Node, err *expression.Error) string {
	if comment := commentHint(n); comment != "" || err == nil {
		return comment
	}
	return err.Hint
}

func commentHint(n *yamlfile.Node) string {
	if n.Comment() == "" {
		return ""
	}
	return fmt.Sprintf("YAML takes %q as a comment: put the expression in quotes if it belongs to it", n.Comment())
}
