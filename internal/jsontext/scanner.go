package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

const maxDepth = 10000

// Scanner reads JSON text. The next call reuses its memory; it is not safe for concurrent use.
type Scanner struct {
	doc    []byte
	strict bool
	open   openKeys
	seek   *Finder
}

// Valid returns an error unless doc is one JSON value (*SyntaxError, ErrShort) and strict
// (*StrictError).
func (s *Scanner) Valid(doc []byte) error { return s.find(doc, nil) }

// ValueLen returns the length of text's first value; ErrShort if text ends inside it, or might.
// Only the grammar is checked.
func (s *Scanner) ValueLen(text []byte, atEnd bool) (int, error) {
	s.reset(text, false)
	end, err := s.value(0, nil, 0)
	if err != nil {
		return 0, err
	}
	if last := text[end-1]; end == len(text) && !atEnd && last != '"' && last != '}' && last != ']' {
		return 0, ErrShort // more of a number may follow
	}
	return end, nil
}

func (s *Scanner) reset(doc []byte, strict bool) {
	s.doc, s.strict, s.open.keys, s.seek = doc, strict, s.open.keys[:0], nil
}

func (s *Scanner) find(doc []byte, f *Finder) error {
	s.reset(doc, true)
	s.seek = f
	var root *node
	if f != nil {
		root = f.root
	}
	if !utf8.Valid(doc) {
		return &StrictError{Offset: invalidUTF8(doc), Msg: "not valid UTF-8"}
	}
	end, err := s.value(s.blank(0), root, 0)
	if err != nil {
		return err
	}
	if end = s.blank(end); end < len(doc) {
		return s.unexpected(end, "the end")
	}
	return nil
}

func invalidUTF8(doc []byte) int {
	i := 0
	for i < len(doc) {
		r, n := utf8.DecodeRune(doc[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

func (s *Scanner) blank(i int) int {
	for i < len(s.doc) && IsBlank(s.doc[i]) {
		i++
	}
	return i
}

func (s *Scanner) unexpected(i int, want string) error {
	if i >= len(s.doc) {
		return ErrShort
	}
	r, n := utf8.DecodeRune(s.doc[i:])
	if r == utf8.RuneError && n <= 1 {
		return &SyntaxError{Offset: i, Msg: fmt.Sprintf("found the byte 0x%02x, expected %s", s.doc[i], want)}
	}
	return &SyntaxError{Offset: i, Msg: fmt.Sprintf("found %q, expected %s", string(r), want)}
}

func (s *Scanner) value(i int, n *node, depth int) (int, error) {
	if i >= len(s.doc) {
		return i, ErrShort
	}
	switch c := s.doc[i]; {
	case c == '"':
		end, _, err := s.text(i)
		return end, err
	case c == '{':
		return s.object(i, n, depth)
	case c == '[':
		return s.array(i, n, depth)
	case c == '-' || c >= '0' && c <= '9':
		return s.number(i)
	case c == 't':
		return s.word(i, "true")
	case c == 'f':
		return s.word(i, "false")
	case c == 'n':
		return s.word(i, "null")
	}
	return i, s.unexpected(i, "a value")
}

func (s *Scanner) word(i int, word string) (int, error) {
	for k := range len(word) {
		if i+k >= len(s.doc) || s.doc[i+k] != word[k] {
			return i, s.unexpected(i+k, word)
		}
	}
	return i + len(word), nil
}

func (s *Scanner) number(i int) (int, error) {
	if s.doc[i] == '-' {
		i++
	}
	if i < len(s.doc) && s.doc[i] == '0' {
		i++
	} else if end := s.digits(i); end > i {
		i = end
	} else {
		return i, s.unexpected(i, "a digit")
	}
	if i < len(s.doc) && s.doc[i] == '.' {
		end := s.digits(i + 1)
		if end == i+1 {
			return i, s.unexpected(end, "a digit")
		}
		i = end
	}
	if i < len(s.doc) && (s.doc[i] == 'e' || s.doc[i] == 'E') {
		i++
		if i < len(s.doc) && (s.doc[i] == '+' || s.doc[i] == '-') {
			i++
		}
		end := s.digits(i)
		if end == i {
			return i, s.unexpected(end, "a digit")
		}
		i = end
	}
	return i, nil
}

func (s *Scanner) digits(i int) int {
	for i < len(s.doc) && s.doc[i] >= '0' && s.doc[i] <= '9' {
		i++
	}
	return i
}

func (s *Scanner) text(i int) (end int, escaped bool, err error) {
	doc := s.doc
	for i++; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			escaped = true
			if i, err = s.escape(i); err != nil {
				return i, escaped, err
			}
		case c < ' ':
			return i, escaped, &SyntaxError{Offset: i, Msg: fmt.Sprintf("found the byte 0x%02x in a string", c)}
		}
	}
	return i, escaped, ErrShort
}

func (s *Scanner) escape(i int) (int, error) {
	if i+1 >= len(s.doc) {
		return i, ErrShort
	}
	switch s.doc[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
	default:
		return i, s.unexpected(i+1, "an escape")
	}
	r, err := s.hex(i + 2)
	if err != nil {
		return i, err
	}
	end := i + 5
	if !s.strict || r < 0xD800 || r > 0xDFFF {
		return end, nil
	}
	if r < 0xDC00 && bytes.HasPrefix(s.doc[end+1:], []byte(`\u`)) {
		low, err := s.hex(end + 3)
		if err != nil {
			return i, err
		}
		if low >= 0xDC00 && low <= 0xDFFF {
			return end + 6, nil
		}
	}
	return i, &StrictError{Offset: i, Msg: fmt.Sprintf(`the lone surrogate \u%s is no character`, s.doc[i+2:end+1])}
}

func (s *Scanner) hex(i int) (rune, error) {
	var r rune
	for k := range 4 {
		if i+k >= len(s.doc) {
			return 0, ErrShort
		}
		c := s.doc[i+k]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, s.unexpected(i+k, "a hex digit")
		}
		r = r<<4 | rune(c)
	}
	return r, nil
}

func (s *Scanner) array(i int, n *node, depth int) (int, error) {
	if depth >= maxDepth {
		return i, &SyntaxError{Offset: i, Msg: fmt.Sprintf("values nest deeper than %d", maxDepth)}
	}
	if i = s.blank(i + 1); i < len(s.doc) && s.doc[i] == ']' {
		return i + 1, nil
	}
	for k := 0; ; k++ {
		child := n.at(k)
		end, err := s.value(i, child, depth+1)
		if err != nil {
			return i, err
		}
		if child != nil {
			s.seek.note(child, i, s.doc[i:end:end])
		}
		if i = s.blank(end); i >= len(s.doc) {
			return i, ErrShort
		}
		switch s.doc[i] {
		case ',':
			i = s.blank(i + 1)
		case ']':
			return i + 1, nil
		default:
			return i, s.unexpected(i, `"," or "]"`)
		}
	}
}

func (s *Scanner) object(i int, n *node, depth int) (int, error) {
	if depth >= maxDepth {
		return i, &SyntaxError{Offset: i, Msg: fmt.Sprintf("values nest deeper than %d", maxDepth)}
	}
	if i = s.blank(i + 1); i < len(s.doc) && s.doc[i] == '}' {
		return i + 1, nil
	}
	mine := keySet{open: &s.open, first: len(s.open.keys)}
	for {
		key, end, err := s.key(i)
		if err == nil && s.strict {
			err = mine.add(key, i)
		}
		if err != nil {
			return i, err
		}
		child := n.child(key)
		if child == nil && n != nil && s.seek.Unknown != nil {
			if err := s.seek.unknown(n, key); err != nil {
				return i, err
			}
		}
		if i = s.blank(end); i >= len(s.doc) || s.doc[i] != ':' {
			return i, s.unexpected(i, `":"`)
		}
		i = s.blank(i + 1)
		if end, err = s.value(i, child, depth+1); err != nil {
			return i, err
		}
		if child != nil {
			s.seek.note(child, i, s.doc[i:end:end])
		}
		if i = s.blank(end); i >= len(s.doc) {
			return i, ErrShort
		}
		switch s.doc[i] {
		case ',':
			i = s.blank(i + 1)
		case '}':
			mine.forget()
			return i + 1, nil
		default:
			return i, s.unexpected(i, `"," or "}"`)
		}
	}
}

func (s *Scanner) key(i int) (key []byte, end int, err error) {
	if i >= len(s.doc) || s.doc[i] != '"' {
		return nil, i, s.unexpected(i, "a key")
	}
	end, escaped, err := s.text(i)
	if err != nil {
		return nil, end, err
	}
	if key = s.doc[i+1 : end-1]; escaped && s.strict {
		text, err := Unquote(s.doc[i:end])
		if err != nil {
			return nil, i, &SyntaxError{Offset: i, Msg: err.Error()}
		}
		key = []byte(text)
	}
	return key, end, nil
}

// IsBlank reports whether c is JSON's white space.
func IsBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// Unquote returns the text of a JSON string that is known to be valid.
func Unquote(raw []byte) (string, error) {
	if inside := raw[1 : len(raw)-1]; bytes.IndexByte(inside, '\\') < 0 {
		return string(inside), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}
