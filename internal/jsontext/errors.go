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
