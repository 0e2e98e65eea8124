// Package sqlscript cuts SQL scripts into their statements, and finds those that begin or end a transaction.
//
// It imports tx and the standard library only.
package sqlscript

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Statement is one of several in a text.
type Statement struct {
	Text string
	// Offset is the byte where Text begins; Line the line, from 1, of its first word.
	Offset, Line int
	Verb         string
	Control      bool
	// Reset is RESET ALL, which removes the transaction's name (rule T8a).
	Reset bool
}

// ChangesRows reports whether the statement returns a number of rows.
func (s Statement) ChangesRows() bool {
	switch s.Verb {
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		return true
	}
	return false
}

// Split cuts at semicolons outside quotes, comments, dollar quotes, parentheses and bodies (BEGIN
// ATOMIC, SQLite triggers). Text it does not understand is left to the database.
func Split(text string, dialect tx.Dialect) []Statement {
	var list []Statement
	sc := scanner{text: text, dialect: dialect}
	current := reading{dialect: dialect}
	from, counted, line := 0, 0, 1
	for {
		token := sc.next()
		if token == "" || (token == ";" && current.ends()) {
			if len(current.words) > 0 || current.parens {
				line += strings.Count(text[counted:current.first], "\n")
				counted = current.first
				list = append(list, current.statement(text[from:sc.start], from, line))
			}
			if token == "" {
				return list
			}
			from, current = sc.at, reading{dialect: dialect}
			continue
		}
		if current.last == "" {
			current.first = sc.start
		}
		current.add(token)
	}
}

type reading struct {
	dialect tx.Dialect
	words   []string // the first ones
	parens  bool     // it begins with a parenthesis, or something did
	depth   int      // of parentheses
	blocks  int      // of BEGIN or CASE to END, inside a body
	first   int      // where its first token is
	last    string
	verb    string
}

// The parentheses belong to CREATE RULE, which on PostgreSQL separates actions with semicolons.
func (r *reading) ends() bool {
	return r.blocks == 0 && (r.depth <= 0 || r.dialect != tx.Postgres)
}

const wordsKept = 4

func (r *reading) add(token string) {
	switch token {
	case "(":
		r.depth++
		r.parens = true
	case ")":
		r.depth--
	case ";", "'":
	default:
		r.word(token)
	}
	r.last = token
}

func (r *reading) word(word string) {
	if len(r.words) < wordsKept {
		r.words = append(r.words, word)
	}
	switch {
	case r.verb == "" && (word != "WITH" || len(r.words) > 1):
		if r.words[0] != "WITH" || (r.depth == 0 && isVerb(word)) {
			r.verb = word
		}
	case r.blocks == 0 && r.opensBody(word):
		r.blocks = 1
	case r.blocks > 0 && word == "END":
		r.blocks--
	case r.opens(word):
		r.blocks++
	}
}

func (r *reading) opensBody(word string) bool {
	if r.words[0] != "CREATE" {
		return false
	}
	if r.dialect == tx.Postgres {
		return word == "ATOMIC" && r.last == "BEGIN"
	}
	return word == "BEGIN" && slices.ContainsFunc(r.words, func(w string) bool {
		return w == "TRIGGER" || r.dialect == tx.MySQL && (w == "PROCEDURE" || w == "FUNCTION" || w == "EVENT")
	})
}

// END IF, of MySQL, ends no counted block.
func (r *reading) opens(word string) bool {
	switch word {
	case "CASE":
		return r.blocks > 0 && r.last != "END"
	case "BEGIN":
		return r.blocks > 0 && r.dialect == tx.MySQL
	case "IF", "LOOP", "WHILE", "REPEAT":
		return r.dialect == tx.MySQL && r.last == "END"
	}
	return false
}

func isVerb(word string) bool {
	switch word {
	case "SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE":
		return true
	}
	return false
}

func (r *reading) statement(text string, from, line int) Statement {
	s := Statement{Text: strings.TrimSpace(text), Line: line, Verb: r.verb}
	s.Offset = from + strings.Index(text, s.Text)
	second := ""
	if len(r.words) > 1 {
		second = r.words[1]
	}
	switch s.Verb {
	case "BEGIN", "COMMIT", "END", "ABORT":
		s.Control = true
	case "ROLLBACK":
		s.Control = !slices.Contains(r.words, "TO") // a savepoint
	case "START", "PREPARE":
		s.Control = second == "TRANSACTION"
	case "RESET":
		s.Reset = second == "ALL"
	}
	return s
}

type scanner struct {
	text    string
	dialect tx.Dialect
	start   int // of the token
	at      int // after it
}

func (s *scanner) next() string {
	for s.at < len(s.text) {
		s.start = s.at
		rest := s.text[s.at:]
		c := rest[0]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			s.at++
		case strings.HasPrefix(rest, "--"), c == '#' && s.dialect == tx.MySQL:
			s.lineComment()
		case strings.HasPrefix(rest, "/*"):
			s.comment()
		case c == ';' || c == '(' || c == ')':
			s.at++
			return string(c)
		case letter(c):
			if word := s.word(); word != "" {
				return word
			}
		case c == '\'' && s.dialect == tx.MySQL:
			s.escaped()
			return "'"
		case c == '\'' || c == '"' || (s.dialect != tx.Postgres && c == '`'):
			s.skipTo(string(c), 1) // a doubled quote is two literals side by side
			return "'"
		case c == '[' && s.dialect == tx.SQLite:
			s.skipTo("]", 1)
			return "'"
		case c == '$' && s.dialect == tx.Postgres:
			s.dollar()
			return "'"
		default:
			s.at++
			return "'"
		}
	}
	s.start = len(s.text)
	return ""
}

// word reads a word; E'...' is a literal in which a backslash escapes.
func (s *scanner) word() string {
	for s.at < len(s.text) && (letter(s.text[s.at]) || s.text[s.at] == '$' || (s.text[s.at] >= '0' && s.text[s.at] <= '9')) {
		s.at++
	}
	word := strings.ToUpper(s.text[s.start:s.at])
	if word != "E" || s.dialect != tx.Postgres || s.at == len(s.text) || s.text[s.at] != '\'' {
		return word
	}
	s.escaped()
	return "'"
}

// escaped skips a literal in which a backslash escapes.
func (s *scanner) escaped() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '\'':
			s.at++
			return
		}
	}
}

// skipTo moves after the next end, from offset on; an open quote ends the text.
func (s *scanner) skipTo(end string, offset int) {
	i := strings.Index(s.text[s.at+offset:], end)
	if i < 0 {
		s.at = len(s.text)
		return
	}
	s.at += offset + i + len(end)
}

// lineComment skips the rest of a line, which in PostgreSQL also ends at a carriage return.
func (s *scanner) lineComment() {
	ends := "\n"
	if s.dialect == tx.Postgres {
		ends = "\r\n"
	}
	if i := strings.IndexAny(s.text[s.at:], ends); i >= 0 {
		s.at += i + 1
		return
	}
	s.at = len(s.text)
}

// comment skips /* */, which nests in PostgreSQL.
func (s *scanner) comment() {
	if s.dialect != tx.Postgres {
		s.skipTo("*/", 2)
		return
	}
	depth := 0
	for s.at < len(s.text) {
		switch {
		case strings.HasPrefix(s.text[s.at:], "/*"):
			depth++
			s.at += 2
		case strings.HasPrefix(s.text[s.at:], "*/"):
			depth--
			s.at += 2
		default:
			s.at++
		}
		if depth == 0 {
			return
		}
	}
}

// dollar skips $tag$ ... $tag$; $1 is a variable.
func (s *scanner) dollar() {
	end := s.at + 1
	for end < len(s.text) && (letter(s.text[end]) || (end > s.at+1 && s.text[end] >= '0' && s.text[end] <= '9')) {
		end++
	}
	if end == len(s.text) || s.text[end] != '$' {
		s.at++
		return
	}
	s.skipTo(s.text[s.at:end+1], end+1-s.at)
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
