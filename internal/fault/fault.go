// Package fault locates the mistake in an item: readers add a place to their errors. It imports the
// standard library only.
package fault

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Place is zero where unknown.
type Place struct {
	Field string `json:"field,omitempty"`
	// Column is from 1.
	Column int `json:"column,omitempty"`
	// From and To are the range in the item's text, from 0, without To; a To of 0 means none.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
}

// Error has the place of its cause, in bytes.
type Error struct {
	Place
	Err error
}

// Error is the cause's.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// At adds the place to err.
func At(p Place, err error) error { return &Error{p, err} }

// Named returns an error of a field, with its name in the text.
func Named(field, format string, args ...any) error {
	return &Error{Place{Field: field}, fmt.Errorf("field %s: "+format, append([]any{field}, args...)...)}
}

// Of returns the place in err, with a range in characters of its whole text.
func Of(err error, text string) Place {
	var e *Error
	if !errors.As(err, &e) {
		return Place{}
	}
	p := e.Place
	p.To = min(p.To, len(text))
	if p.From < 0 || p.From > p.To {
		p.From, p.To = 0, 0
	}
	p.From, p.To = utf8.RuneCountInString(text[:p.From]), utf8.RuneCountInString(text[:p.To])
	return p
}

// Within returns the part of the range that a text has.
func (p Place) Within(text string) Place {
	p.To = min(p.To, utf8.RuneCountInString(text))
	if p.From > p.To {
		p.From, p.To = 0, 0
	}
	return p
}
