package jobfile

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

const literalHint = "a literal ${ is written $${"

// A template is a text with ${...} in it. `$${` is a literal `${`; a `$` elsewhere
// is an ordinary character.
type template struct {
	// texts surround the holes: one more than those.
	texts []string
	holes []hole
}

// hole is one ${...}.
type hole struct {
	text   string
	offset int // of the expression in the scalar
	begin  int // of the ${ in the scalar
	prog   *expression.Program
}

// whole reports whether the text is exactly one ${...}: it keeps its type.
func (t *template) whole() bool {
	return len(t.holes) == 1 && t.texts[0] == "" && t.texts[1] == ""
}

func (t *template) literal() string { return t.texts[0] }

// evaluate returns the text with the values of its compiled holes; it returns the hole of an error with it.
func (t *template) evaluate(vars map[string]any) (string, *hole, error) {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i == len(t.holes) {
			break
		}
		x, err := t.holes[i].prog.Eval(vars)
		if err != nil {
			return "", &t.holes[i], err
		}
		b.WriteString(textOf(x))
	}
	return b.String(), nil, nil
}

// templateError is a mistake in a text, at an offset.
type templateError struct {
	offset    int
	msg, hint string
}

func (e *templateError) Error() string { return e.msg }

// braces is a value in the notation of template languages.
var braces = regexp.MustCompile(`\{\{-?\s*((?:params|job|env|steps|context|part|item|with|secret)\.[^{}]*?)\s*-?\}\}`)

func reportTemplate(c *yamlfile.Collector, n *yamlfile.Node, key string, err error) {
	at, hint := 0, ""
	var e *templateError
	if errors.As(err, &e) {
		at, hint = e.offset, e.hint
	}
	c.AddAt(n, at, key+": "+err.Error(), hint)
}

// parseTemplate splits text at its ${...}. Braces and quotes inside of an
// expression belong to it.
func parseTemplate(text string) (*template, error) {
	if m := braces.FindStringSubmatchIndex(text); m != nil {
		return nil, &templateError{m[0], "{{ }} is not how a value is named here", "write ${" + text[m[2]:m[3]] + "}"}
	}
	t := &template{}
	var literal strings.Builder
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(text[i:], "${"):
			end := closing(text, i+2)
			if end < 0 {
				return nil, &templateError{i, "${ is not closed", literalHint}
			}
			t.texts = append(t.texts, literal.String())
			literal.Reset()
			inner := text[i+2 : end]
			trimmed := strings.TrimLeft(inner, " \t\n")
			t.holes = append(t.holes, hole{text: strings.TrimSpace(inner), offset: i + 2 + len(inner) - len(trimmed), begin: i})
			i = end + 1
		default:
			literal.WriteByte(text[i])
			i++
		}
	}
	t.texts = append(t.texts, literal.String())
	return t, nil
}

// scalarOffset converts byte offset of a literal part to an offset in the scalar that the template was parsed
// from.
func (t *template) scalarOffset(scalar string, part, offset int) int {
	at := 0
	if part > 0 {
		at = closing(scalar, t.holes[part-1].begin+2) + 1
	}
	for ; offset > 0 && at < len(scalar); offset-- {
		if strings.HasPrefix(scalar[at:], "$${") {
			at++
		}
		at++
	}
	return at
}

// closing returns the position of the } that closes a ${ whose expression begins at from, or -1.
func closing(text string, from int) int {
	depth := 0
	var quote byte
	for i := from; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// fixed reads scalars that take no ${...}: the configs of components do, and the defaults of parameters.
func fixed(problems *yamlfile.Collector) func(n *yamlfile.Node, f yamlfile.Field, _ reflect.Type) (yamlfile.Value, bool) {
	return func(n *yamlfile.Node, f yamlfile.Field, _ reflect.Type) (yamlfile.Value, bool) {
		t, err := parseTemplate(n.Text)
		switch {
		case err != nil:
			reportTemplate(problems, n, f.Key, err)
		case len(t.holes) > 0:
			problems.AddAt(n, t.holes[0].offset, f.Key+" takes no ${...} in this version", "the configs of components do, and the defaults of parameters; a literal ${ is written $${")
		default:
			return yamlfile.Value{Text: t.literal()}, true
		}
		return yamlfile.Value{}, false
	}
}
