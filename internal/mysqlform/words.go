package mysqlform

import "strings"

// piece is a part of a statement with the number of arguments before it.
type piece struct {
	text   string
	before int
}

// args returns the arguments of the piece.
func (p piece) args() Span { return Span{p.before, p.before + variables(p.text)} }

// cut splits a piece before the first of each of the words that it has outside of parentheses and quotes, in their order.
func (p piece) cut(words ...string) map[string]piece {
	found, from, word := map[string]piece{}, 0, ""
	end := func(to int) {
		found[word] = piece{p.text[from:to], p.before + variables(p.text[:from])}
	}
	for at := range top(p.text) {
		for i, w := range words {
			if isWord(p.text, at, w) {
				end(at)
				from, word, words = at+len(w), w, words[i+1:]
				break
			}
		}
	}
	end(len(p.text))
	return found
}

func isWord(text string, at int, word string) bool {
	end := at + len(word)
	return strings.HasPrefix(text[at:], word) && (at == 0 || !isLetter(text[at-1])) && (end == len(text) || !isLetter(text[end]))
}

func isLetter(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// top yields the positions outside of parentheses and quotes.
func top(text string) func(yield func(at int) bool) {
	return func(yield func(at int) bool) {
		depth := 0
		for at := 0; at < len(text); at++ {
			switch c := text[at]; c {
			case '\'', '"', '`':
				if depth == 0 && !yield(at) {
					return
				}
				at = quoted(text, at)
			case '(':
				if depth == 0 && !yield(at) {
					return
				}
				depth++
			case ')':
				depth--
			default:
				if depth == 0 && !yield(at) {
					return
				}
			}
		}
	}
}

// quoted returns the position of the quote that ends the one at a position; a doubled one begins another.
func quoted(text string, at int) int {
	if end := strings.IndexByte(text[at+1:], text[at]); end >= 0 {
		return at + 1 + end
	}
	return len(text)
}

func variables(text string) (n int) {
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '\'', '"', '`':
			at = quoted(text, at)
		case '?':
			n++
		}
	}
	return n
}

// list splits a piece at its commas.
func (p piece) list() (items []piece) {
	from := 0
	add := func(to int) {
		items = append(items, piece{p.text[from:to], p.before + variables(p.text[:from])})
		from = to + 1
	}
	for at := range top(p.text) {
		if p.text[at] == ',' {
			add(at)
		}
	}
	add(len(p.text))
	return items
}

// inside is what the first parentheses of a piece enclose; after is the rest.
func (p piece) inside() (inner piece, after string) {
	open := strings.IndexByte(p.text, '(')
	if open < 0 {
		return piece{}, p.text
	}
	depth := 0
	for at := open; at < len(p.text); at++ {
		switch p.text[at] {
		case '\'', '"', '`':
			at = quoted(p.text, at)
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return piece{p.text[open+1 : at], p.before + variables(p.text[:open])}, p.text[at+1:]
			}
		}
	}
	return piece{}, p.text
}

// name removes blanks, quotes and a table's name.
func name(column string) string {
	column = strings.TrimSpace(column)
	if dot := strings.LastIndexByte(column, '.'); dot >= 0 {
		column = column[dot+1:]
	}
	return strings.Trim(column, "\"`")
}

// mentions reports whether an expression has a column's name.
func mentions(text, column string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], column)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(column)
		before := at == 0 || !isLetter(text[at-1]) || text[at-1] == '.'
		if before && (end == len(text) || !isLetter(text[end])) {
			return true
		}
		from = end
	}
}
