// Package jsontext reads JSON more strictly than encoding/json, and without making values of it: it
// finds the end of a value, refuses text that encoding/json would silently correct (invalid UTF-8,
// lone surrogates, duplicate keys), and finds the values at paths such as properties.mag or
// geometry.coordinates[0].
//
// It imports the standard library only.
package jsontext

import (
	"errors"
	"fmt"
)

// ErrShort means that the text ends before the value does.
var ErrShort = errors.New("the text ends inside a value")

// SyntaxError is text that is not JSON.
type SyntaxError struct {
	Offset int // of the first byte that does not fit
	Msg    string
}

// Error states the found and the expected text.
func (e *SyntaxError) Error() string { return e.Msg }

// StrictError is JSON that may mean more than one thing.
type StrictError struct {
	Offset int
	Msg    string
}

// Error names the fault and its position in the document.
func (e *StrictError) Error() string { return fmt.Sprintf("%s (byte %d)", e.Msg, e.Offset+1) }

// PathError is a value without members in the middle of a path.
type PathError struct {
	Field int // of Finder
	Msg   string
}

// Error names the value in the way.
func (e *PathError) Error() string { return e.Msg }

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

// IsBlank reports whether c is JSON's white space.
func IsBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
