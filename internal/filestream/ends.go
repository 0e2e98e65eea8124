package filestream

import (
	"errors"
	"fmt"
)

// Ends describes how records end in a text, so that a following record can be distinguished.
type Ends struct {
	LineEnd string
	Quote   byte
	// Escape precedes a quote that is text; 0 means that it is doubled.
	Escape byte
	Comma  string // between fields, where there are quotes
}

type endsCheck struct {
	Ends
	state    endsState
	last     byte   // before the next byte
	field    []byte // the end of the current field, as long as Comma may be
	line     int64  // lines before the next byte
	opened   int64  // lines before the last quote that opened a field
	lf, crlf bool   // which ends it has
	cr       bool   // it has CR alone
}

type endsState int

const (
	atField    endsState = iota // a field begins
	inBare                      // in a field without quotes
	inQuoted                    // in quotes
	afterMark                   // after an escape in quotes
	afterQuote                  // after a quote in quotes, which ends the field or is the first of two
)

func newEndsCheck(of *Ends) *endsCheck {
	if of == nil {
		return nil
	}
	return &endsCheck{Ends: *of}
}

func (e *endsCheck) add(text []byte) {
	if e == nil {
		return
	}
	for _, c := range text {
		e.next(c)
		e.last = c
	}
}

func (e *endsCheck) next(c byte) {
	if e.state == inQuoted || e.state == afterMark || e.state == afterQuote && c == e.Quote {
		e.quoted(c)
		return
	}
	if e.last == '\r' && c != '\n' {
		e.cr = true
		if !e.lf && !e.crlf { // a line begins
			e.state = atField
		}
	}
	if e.state == atField && c == e.Quote && e.Quote != 0 {
		e.state, e.opened = inQuoted, e.line
		return
	}
	e.state = inBare
	if c == '\n' {
		e.crlf, e.lf = e.crlf || e.last == '\r', e.lf || e.last != '\r'
		e.line++
		e.state, e.field = atField, e.field[:0]
		return
	}
	if e.Comma == "" {
		return
	}
	if len(e.field) == len(e.Comma) {
		e.field = append(e.field[:0], e.field[1:]...)
	}
	if e.field = append(e.field, c); string(e.field) == e.Comma {
		e.state, e.field = atField, e.field[:0]
	}
}

func (e *endsCheck) quoted(c byte) {
	switch {
	case e.state == afterQuote:
		e.state = inQuoted
	case e.state == afterMark && (c == e.Quote || c == e.Escape):
		e.state = inQuoted
	case c == e.Quote:
		e.state, e.field = afterQuote, e.field[:0]
	case c == e.Escape && e.Escape != 0:
		e.state = afterMark
	default:
		e.state = inQuoted
		if c == '\n' {
			e.line++
		}
	}
}

func (e *endsCheck) wrong() error {
	if e == nil {
		return nil
	}
	wantsCRLF := e.LineEnd == "\r\n"
	switch {
	case e.state == inQuoted || e.state == afterMark:
		return fmt.Errorf("the quote that opens a field in line %d is not closed: appended records would belong to that field", e.opened+1)
	case wantsCRLF && e.lf && !e.crlf:
		return errors.New("its lines end with LF, but this step's with CRLF: set line_end: lf")
	case !wantsCRLF && e.crlf && !e.lf:
		return errors.New("its lines end with CRLF, but this step's with LF: set line_end: crlf")
	case (e.cr || e.last == '\r') && !e.lf && !e.crlf:
		return errors.New("its lines end with CR, which writers do not support: change them to LF or CRLF first")
	}
	return nil
}
