package sqlscript

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Place is where in a statement a variable stands.
type Place int

// Only a free variable can be bound.
const (
	Free Place = iota
	InLiteral
	InComment
	InName
)

// Variable is one of the variables of a text.
type Variable struct {
	Place   Place
	Text    string
	Offset  int
	Literal []string
	First   int
}

// mark stands for a variable: SQL never uses it.
const mark = "\x01"

// Variables returns the positions of the variables between the parts.
func Variables(parts []string, dialect tx.Dialect) []Variable {
	for i, part := range parts {
		if strings.Contains(part, mark) {
			parts = slices.Clone(parts)
			parts[i] = strings.ReplaceAll(part, mark, "\x02")
		}
	}
	text := strings.Join(parts, mark)
	list := make([]Variable, 0, len(parts)-1)
	sc := scanner{text: text, dialect: dialect}
	var before context
	for n := 0; n < len(parts)-1; {
		at := strings.Index(text[sc.at:], mark)
		token := sc.next()
		switch end := sc.start; {
		case at < 0:
			return list // cannot be: a mark per variable
		case token == "":
			end = len(text)
			fallthrough
		default:
			for range strings.Count(text[before.end:end], mark) { // blanks and comments have no token
				list, n = append(list, Variable{Place: InComment}), n+1
			}
		}
		if inside := strings.Count(text[sc.start:sc.at], mark); inside > 0 {
			v := before.variable(text, sc.start, sc.at)
			v.First = n
			for range inside {
				list, n = append(list, v), n+1
			}
		}
		before.add(token, sc.at)
	}
	return list
}

type context struct {
	end    int    // of the last one
	last   string // the last one
	second string // the one before it
	// selects records whether each open parenthesis contains a SELECT or DELETE: a FROM after it
	// takes a table, unlike in EXTRACT(YEAR FROM x).
	selects []bool
}

func (c *context) add(token string, end int) {
	if len(c.selects) == 0 {
		c.selects = []bool{false}
	}
	top := len(c.selects) - 1
	switch token {
	case "(":
		c.selects = append(c.selects, false)
	case ")":
		c.selects = c.selects[:max(top, 1)]
	case ";":
		c.selects = []bool{false}
	case "SELECT", "DELETE":
		c.selects[top] = true
	}
	c.second, c.last, c.end = c.last, token, end
}

func (c *context) variable(text string, from, to int) Variable {
	if to-from > len(mark) {
		v := Variable{Place: InLiteral, Text: text[from:to], Offset: from}
		open := strings.IndexByte(v.Text, '\'')
		if open < 0 || v.Text[0] == '"' || v.Text[0] == '`' || v.Text[0] == '[' {
			v.Place = InName
			if v.Text[0] == '$' {
				v.Place, v.Literal = InLiteral, []string{}
			}
			return v
		}
		v.Literal = strings.Split(strings.TrimSuffix(v.Text[open+1:], "'"), mark)
		return v
	}
	if c.takesName() || c.end == from && from > 0 && nameByte(text[from-1]) || to < len(text) && nameByte(text[to]) {
		return Variable{Place: InName}
	}
	return Variable{Place: Free}
}

func nameByte(c byte) bool { return letter(c) || c == '.' || c >= '0' && c <= '9' }

// takesName reports whether a table's name follows the last token.
func (c *context) takesName() bool {
	switch c.last {
	case "INTO", "JOIN", "UPDATE", "TABLE", "TRUNCATE":
		return true
	case "FROM":
		return c.second != "DISTINCT" && len(c.selects) > 0 && c.selects[len(c.selects)-1]
	}
	return false
}
