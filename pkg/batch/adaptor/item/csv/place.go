package csv

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/fault"
)

// place is the character in the line, and the line if an earlier quoted text has line ends.
func (r *reader) place(column int) string {
	before := r.in.Buffered(r.from)[:r.csv.fields[column].at]
	lines, begin := r.csv.linesIn(before)
	line := r.fromLines + 1 + int64(lines)
	at := utf8.RuneCount(before[begin:]) + 1
	if line != r.line {
		return fmt.Sprintf("line %d, character %d", line, at)
	}
	return fmt.Sprintf("character %d", at)
}

// characterOf is the place of a malformed text in its line.
func characterOf(r *reader, wrong *scanError) int {
	text := r.in.Buffered(r.from)[skippedBytes(r, r.csv.before+wrong.line-1):]
	return utf8.RuneCount(text[:min(wrong.column-1, len(text))]) + 1
}

// inColumn adds the place of a column of the last record, which may lack it.
func inColumn(r *reader, field string, column int, err error) error {
	p := fault.Place{Field: field, Column: column + 1}
	text, start := recordText(r)
	if column < len(r.csv.fields) {
		p.From, p.To = r.csv.span(column, text, start)
		err = fmt.Errorf("%s: %w", r.place(column), err)
	} else {
		p.From, p.To = len(text), len(text)
	}
	return fault.At(p, err)
}

// wrongNumber adds the place of the first column that is missing, or too many.
func wrongNumber(r *reader, want int, missing string, err error) error {
	text, start := recordText(r)
	p := fault.Place{Field: missing, Column: len(r.csv.fields) + 1, From: len(text), To: len(text)}
	if want < len(r.csv.fields) {
		p.Field, p.Column = "", want+1
		p.From, _ = r.csv.span(want, text, start)
	}
	return fault.At(p, err)
}

// malformed adds the place of the last field of a record that ends before a byte of its text.
func malformed(r *reader, end int, err error) error {
	last := len(r.csv.fields) - 1
	p := fault.Place{Field: fieldOf(r, last), Column: last + 1, To: end}
	p.From = r.csv.fields[last].at - skippedBytes(r, r.csv.before)
	return fault.At(p, err)
}

// fieldOf is the name of the field in a column, or else of the column.
func fieldOf(r *reader, column int) string {
	for i, at := range r.index {
		if at == column {
			return r.bare[i].Name
		}
	}
	if column < len(r.columns) {
		return r.columns[column]
	}
	return ""
}

// span is the text of a field, with its quotes; start is the place of the record's text in what was scanned.
func (s *scanner) span(column int, record []byte, start int) (from, to int) {
	f := s.fields[column]
	from = f.at - start
	if !f.quoted {
		return from, from + f.to - f.from
	}
	text := record
	if column+1 < len(s.fields) {
		text = record[:s.fields[column+1].at-start]
	}
	if s.trim || s.runs {
		text = bytes.TrimRightFunc(text, unicode.IsSpace)
	}
	if column+1 < len(s.fields) {
		text = bytes.TrimSuffix(text, s.comma)
	}
	return from, max(from, len(text))
}
