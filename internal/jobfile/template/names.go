package template

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Names are the names that an expression may use at its location.
type Names struct {
	Scope expression.Scope
	// Refusal returns why a name of the scope cannot be used, or ""; it may be nil.
	Refusal func(path string) string
	// Unknown are prefixes of names with unknown types, because their definition has a mistake.
	Unknown []string
	// Steps is called with every step that an expression names; may be nil.
	Steps func(c *yamlfile.Collector, n *yamlfile.Node, offset int, step string)
}

// CompileHole compiles one ${...}. It reports an error.
func CompileHole(c *yamlfile.Collector, n *yamlfile.Node, h Hole, in *Names) (*expression.Program, error) {
	if h.Text == "" {
		c.AddAt(n, h.Offset, "${} is empty", "a literal ${ is written $${")
		return nil, errReported
	}
	return in.Compile(c, n, h.Text, h.Offset, "${"+h.Text+"}: ")
}

// Compile compiles an expression at an offset of a node's text; what begins its messages.
func (in *Names) Compile(c *yamlfile.Collector, n *yamlfile.Node, text string, offset int, what string) (*expression.Program, error) {
	prog, err := expression.Compile(text, in.Scope)
	if err != nil {
		if slices.ContainsFunc(in.Unknown, func(begin string) bool { return strings.Contains(text, begin) }) {
			return nil, errReported // where it should be known
		}
		if in.reportRefusal(c, n, text, offset, what) {
			return nil, errReported
		}
		at := 0
		var where *expression.Error
		if errors.As(err, &where) {
			at = where.Offset
		}
		c.AddAt(n, offset+at, what+err.Error(), ExpressionHint(n, where))
		return nil, errReported
	}
	for _, path := range prog.Vars() {
		if slices.ContainsFunc(in.Unknown, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			return nil, errReported // where it should be known
		}
		if in.Refusal != nil {
			if why := in.Refusal(path); why != "" {
				c.AddAt(n, offset, what+why, "")
				return nil, errReported
			}
		}
		if rest, is := strings.CutPrefix(path, "steps."); is && in.Steps != nil {
			step, _, _ := strings.Cut(rest, ".")
			in.Steps(c, n, offset, step)
		}
	}
	return prog, nil
}

// reportRefusal reports the first name of a text that does not compile but is known in other locations: that
// matters more than its type.
func (in *Names) reportRefusal(c *yamlfile.Collector, n *yamlfile.Node, text string, offset int, what string) bool {
	if in.Refusal == nil {
		return false
	}
	for _, at := range dotted.FindAllStringIndex(text, -1) {
		if why := in.Refusal(text[at[0]:at[1]]); why != "" {
			c.AddAt(n, offset+at[0], what+why, "")
			return true
		}
	}
	return false
}

var dotted = regexp.MustCompile(`\b[a-z]+\.[A-Za-z_]+`)

var errReported = errors.New("reported")

// NeedsStep reports whether a program uses values that are known only when its step starts.
func NeedsStep(prog *expression.Program) bool {
	return slices.ContainsFunc(prog.Vars(), func(path string) bool {
		head, rest, _ := strings.Cut(path, ".")
		return head != "params" && head != "env" && head != "secret" && path != "job.name" && rest != ""
	})
}

// ExpressionHint is the hint for an error of the expression in a node.
func ExpressionHint(n *yamlfile.Node, err *expression.Error) string {
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
