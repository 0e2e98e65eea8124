// Package sqlerr finds the position in a job file of a statement that a database refuses.
//
// It imports core/registry, tx and internal/dberr.
package sqlerr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// In adds to err the position of the fault in the job file. SQLite gives none: it is the
// statement's beginning. Errors that concern neither statement nor row are unchanged.
func In(s registry.SQL, d tx.Dialect, sent string, err error) error {
	if err == nil || s.IsZero() {
		return err
	}
	if at, within := position(s, d, sent, err); within {
		return add(s, at.part, at.offset, strings.TrimSpace(lineAt(sent, at.sent)), err)
	}
	return add(s, 0, 0, s.String(), err)
}

// InScript is In for a script's statement, at offset.
func InScript(s registry.SQL, offset int, statement string, err error) error {
	begin := len(statement) - len(strings.TrimLeft(statement, " \t\r\n"))
	return add(s, 0, offset+begin, statement, err)
}

func add(s registry.SQL, part, offset int, shown string, err error) error {
	if err == nil || !dberr.IsStatement(err) && !dberr.IsConstraintViolation(err) {
		return err
	}
	if _, known := errors.AsType[*statementError](err); known {
		return err
	}
	e := &statementError{err: err, shown: shorten(strings.Join(strings.Fields(shown), " "))}
	if s.At != nil {
		e.place = s.At(part, offset)
	}
	return e
}

type statementError struct {
	err          error
	place, shown string
}

func (e *statementError) Error() string {
	text := fmt.Sprintf("%v, in: %s", e.err, e.shown)
	if e.place != "" {
		text = e.place + ": " + text
	}
	return text
}

func (e *statementError) Unwrap() error { return e.err }

type location struct{ part, offset, sent int }

func position(s registry.SQL, d tx.Dialect, sent string, err error) (at location, within bool) {
	character := dberr.Position(err)
	if character < 1 {
		return location{}, false
	}
	at.sent = byteOf(sent, character-1)
	text, _ := s.Render(d.Placeholder)
	text = strings.TrimRight(text, "; \t\r\n")
	begin := strings.Index(sent, text)
	if begin < 0 || at.sent < begin || at.sent > begin+len(text) {
		return location{}, false
	}
	rest := at.sent - begin
	for i, part := range s.Parts {
		if rest <= len(part) {
			at.part, at.offset = i, rest
			return at, true
		}
		rest -= len(part)
		variable := len(d.Placeholder(i + 1))
		if rest < variable {
			at.part, at.offset = i, len(part)
			return at, true
		}
		rest -= variable
	}
	return at, false
}

func byteOf(text string, character int) int {
	at := 0
	for ; character > 0 && at < len(text); character-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

func lineAt(text string, at int) string {
	begin := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[begin:], "\n")
	return line
}

const shownBytes = 160

func shorten(text string) string {
	if len(text) <= shownBytes {
		return text
	}
	end := shownBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
