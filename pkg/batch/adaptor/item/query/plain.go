package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// plainTable is a statement that only reads a table: the catalogue shows which columns are never null.
type plainTable struct {
	schema, table string
	star          bool
	columns       map[string]string
}

type token struct {
	text   string
	quoted bool
}

func (t token) is(word string) bool { return !t.quoted && strings.EqualFold(t.text, word) }

func (t token) isName() bool {
	first, _ := utf8.DecodeRuneInString(t.text)
	return t.quoted || first == '_' || unicode.IsLetter(first)
}

func tokens(text string) []token {
	var list []token
	for i := 0; i < len(text); {
		rest := text[i:]
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(c):
		case strings.HasPrefix(rest, "--"):
			size = len(before(rest, "\n"))
		case strings.HasPrefix(rest, "/*"):
			size = min(len(before(rest, "*/"))+2, len(rest))
		case c == '"':
			size = quotedEnd(rest, '"')
			name := strings.ReplaceAll(strings.Trim(rest[:size], `"`), `""`, `"`)
			list = append(list, token{name, true})
		case c == '\'':
			size = quotedEnd(rest, '\'')
			list = append(list, token{"'", false})
		case c == '_' || unicode.IsLetter(c):
			size = len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) }))
			list = append(list, token{rest[:size], false})
		default:
			list = append(list, token{rest[:size], false})
		}
		i += max(size, 1)
	}
	return list
}

func before(text, mark string) string {
	found, _, _ := strings.Cut(text, mark)
	return found
}

func quotedEnd(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		if text[i] != quote {
			continue
		}
		if i+1 == len(text) || text[i+1] != quote {
			return i + 1
		}
		i++
	}
	return len(text)
}

// plainOf accepts SELECT of columns FROM one table, with WHERE and ORDER BY at most.
func plainOf(s registry.SQL, d tx.Dialect) (plainTable, bool) {
	text, _ := s.Render(func(int) string { return "''" })
	p := plainTable{columns: map[string]string{}}
	in := tokens(strings.TrimRight(text, "; \t\r\n"))
	if len(in) < 4 || !in[0].is("select") {
		return p, false
	}
	fold := func(t token) string {
		if d == tx.Postgres && !t.quoted {
			return strings.ToLower(t.text)
		}
		return t.text
	}
	from := slices.IndexFunc(in, func(t token) bool { return t.is("from") })
	if from < 2 || !p.selects(in[1:from], fold) {
		return p, false
	}
	in = in[from+1:]
	if len(in) > 2 && in[0].isName() && in[1].is(".") && in[2].isName() {
		p.schema, p.table, in = fold(in[0]), fold(in[2]), in[3:]
	} else if len(in) > 0 && in[0].isName() {
		p.table, in = fold(in[0]), in[1:]
	} else {
		return p, false
	}
	return p, endsPlain(in)
}

func (p *plainTable) selects(list []token, fold func(token) string) bool {
	for len(list) > 0 {
		end := slices.IndexFunc(list, func(t token) bool { return t.is(",") })
		one, rest := list, []token(nil)
		if end >= 0 {
			one, rest = list[:end], list[end+1:]
		}
		if len(one) > 2 && one[0].isName() && one[1].is(".") {
			one = one[2:]
		}
		as := len(one) == 3 && one[1].is("as")
		switch {
		case len(one) == 1 && one[0].is("*"):
			p.star = true
		case len(one) == 1 && one[0].isName():
			p.columns[fold(one[0])] = fold(one[0])
		case as && one[0].isName() && one[2].isName(), len(one) == 2 && one[0].isName() && one[1].isName() && !one[0].is("distinct") && !one[0].is("all"):
			p.columns[fold(one[len(one)-1])] = fold(one[0])
		default:
			return false
		}
		list = rest
	}
	return true
}

func endsPlain(in []token) bool {
	if len(in) > 1 && in[0].is("as") {
		in = in[1:]
	}
	if len(in) > 0 && in[0].isName() && !in[0].is("where") && !in[0].is("order") {
		in = in[1:]
	}
	if len(in) > 0 && !in[0].is("where") && !in[0].is("order") {
		return false
	}
	return !slices.ContainsFunc(in, func(t token) bool {
		return t.is("union") || t.is("except") || t.is("intersect") || t.is("group") || t.is("join")
	})
}

type catalogued struct {
	has, notNull map[string]bool
	// nil means no rowids
	rowid *bool
}
