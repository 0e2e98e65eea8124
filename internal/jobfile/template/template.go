package template

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// A template is a text with ${...} in it. `$${` is a literal `${`; a `$` elsewhere
// is an ordinary character.
type Template struct {
	Texts []string
	Holes []Hole
}

// Hole is one ${...}.
type Hole struct {
	Text   string
	Offset int // of the expression in the scalar
	Begin  int // of the ${ in the scalar
	Prog   *expression.Program
}

// Parse splits text at its ${...}, including braces and quotes inside them.
func Parse(text string) (*Template, error) {
	if m := braces.FindStringSubmatchIndex(text); m != nil {
		return nil, &templateError{m[0], "{{ }} is not the syntax of a value", "write ${" + text[m[2]:m[3]] + "}"}
	}
	t := &Template{}
	var literal strings.Builder
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(text[i:], "${"):
			end := Closing(text, i+2)
			if end < 0 {
				return nil, &templateError{i, "${ is not closed", literalHint}
			}
			t.Texts = append(t.Texts, literal.String())
			literal.Reset()
			inner := text[i+2 : end]
			trimmed := strings.TrimLeft(inner, " \t\n")
			t.Holes = append(t.Holes, Hole{Text: strings.TrimSpace(inner), Offset: i + 2 + len(inner) - len(trimmed), Begin: i})
			i = end + 1
		default:
			literal.WriteByte(text[i])
			i++
		}
	}
	t.Texts = append(t.Texts, literal.String())
	return t, nil
}

// Closing returns the position of the } that closes a ${ whose expression begins at from, or -1.
func Closing(text string, from int) int {
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

var braces = regexp.MustCompile(`\{\{-?\s*((?:params|job|env|steps|context|part|item|with|secret)\.[^{}]*?)\s*-?\}\}`)

const literalHint = "a literal ${ is written $${"

// Whole reports whether the text is exactly one ${...}: it keeps its type.
func (t *Template) Whole() bool {
	return len(t.Holes) == 1 && t.Texts[0] == "" && t.Texts[1] == ""
}

// Literal is the text of a template without ${...}.
func (t *Template) Literal() string { return t.Texts[0] }

// Evaluate returns the text with the values of its holes, or the failed hole.
func (t *Template) Evaluate(vars map[string]any) (string, *Hole, error) {
	var b strings.Builder
	for i, text := range t.Texts {
		b.WriteString(text)
		if i == len(t.Holes) {
			break
		}
		x, err := t.Holes[i].Prog.Eval(vars)
		if err != nil {
			return "", &t.Holes[i], err
		}
		b.WriteString(Text(x))
	}
	return b.String(), nil, nil
}

// ScalarOffset converts an offset of a literal part to an offset in the scalar.
func (t *Template) ScalarOffset(scalar string, part, offset int) int {
	at := 0
	if part > 0 {
		at = Closing(scalar, t.Holes[part-1].Begin+2) + 1
	}
	for ; offset > 0 && at < len(scalar); offset-- {
		if strings.HasPrefix(scalar[at:], "$${") {
			at++
		}
		at++
	}
	return at
}

// Fixed reads scalars that take no ${...}.
func Fixed(problems *yamlfile.Collector) func(n *yamlfile.Node, f yamlfile.Field, _ reflect.Type) (yamlfile.Value, bool) {
	return func(n *yamlfile.Node, f yamlfile.Field, _ reflect.Type) (yamlfile.Value, bool) {
		t, err := Parse(n.Text)
		switch {
		case err != nil:
			Report(problems, n, f.Key, err)
		case len(t.Holes) > 0:
			problems.AddAt(n, t.Holes[0].Offset, f.Key+" takes no ${...}", "configs of components and defaults of parameters do; a literal ${ is written $${")
		default:
			return yamlfile.Value{Text: t.Literal()}, true
		}
		return yamlfile.Value{}, false
	}
}

// Report reports an error of Parse.
func Report(c *yamlfile.Collector, n *yamlfile.Node, key string, err error) {
	at, hint := 0, ""
	var e *templateError
	if errors.As(err, &e) {
		at, hint = e.offset, e.hint
	}
	c.AddAt(n, at, key+": "+err.Error(), hint)
}

type templateError struct {
	offset    int
	msg, hint string
}

func (e *templateError) Error() string { return e.msg }

// LateValue is a text with compiled ${...}.
type LateValue struct {
	*Template
	AtStep bool
}
