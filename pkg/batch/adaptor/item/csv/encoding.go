package csv

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type form struct {
	nulls    string
	quoteAll bool
	quote    byte
	escape   byte
	comma    string
	wide     bool
	special  [256]bool
	end      string
	enc      *filestream.Encoder
}

type encoded struct {
	*form
	schema *row.Schema
	cells  []cell
	field  []byte
	buf    []byte
}

type cell struct {
	// Numbers, dates and truth values never need quotes.
	plain bool
	null  []byte
	// marks are written in quotes because a reader could take them for null.
	marks [][]byte
}

func (l *encoded) EncodeRecords(schema *row.Schema, records [][]row.Value) error {
	l.buf = l.buf[:0]
	if l.schema != schema {
		l.use(schema)
	}
	for _, record := range records {
		start := len(l.buf)
		if err := l.addRecord(record); err != nil {
			return exception.InvalidItem("csv", exception.ClassInvalidItem, err)
		}
		if err := l.endRecord(start); err != nil {
			return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("record %.80q: %w", l.buf[start:], err))
		}
	}
	return nil
}

func (l *encoded) use(schema *row.Schema) {
	l.schema, l.cells = schema, make([]cell, schema.Len())
	inValues := strings.ContainsFunc(l.comma, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("+-.:", c) })
	for i := range l.cells {
		f, c := schema.Field(i), &l.cells[i]
		c.null = []byte(l.nulls)
		if f.Nulls != nil {
			if c.null = f.AppendText(nil, row.Value{}); l.needsQuotes(c.null) {
				c.null = l.inQuotes(nil, c.null)
			}
		}
		isText, single := f.Kind == row.String || f.Kind == row.BytesKind, len(l.cells) == 1
		if single && !f.Nullable && len(c.null) == 0 {
			c.null = l.inQuotes(nil, nil)
		}
		if isText && f.Nullable || single {
			c.marks = append(c.marks, nil)
		}
		for _, mark := range append([]string{l.nulls}, f.Nulls...) {
			if mark != "" {
				c.marks = append(c.marks, []byte(mark))
			}
		}
		_, noValue := f.Parse(l.nulls)
		c.plain = !l.quoteAll && !inValues && f.Format == "" && f.DecimalSeparator == "" && !f.HasWords() && (l.nulls == "" || noValue != nil)
	}
}

func (l *encoded) addRecord(record []row.Value) error {
	buf := l.buf
	for i := range record {
		v, f := &record[i], l.schema.Field(i)
		if i > 0 && len(l.comma) == 1 { // faster than a call
			buf = append(buf, l.comma[0])
		} else if i > 0 {
			buf = append(buf, l.comma...)
		}
		at := len(buf)
		switch v.Kind() {
		case row.Float:
			if err := v.Finite(); err != nil { // the reader would refuse its text
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
			fallthrough
		case row.Int, row.DecimalKind, row.Bool, row.DateKind, row.Timestamp:
			if l.cells[i].plain {
				buf = v.AppendText(buf)
				continue
			}
			buf = f.AppendText(buf, *v)
		case row.String:
			buf = append(buf, v.Str()...)
		case row.Null:
			buf = append(buf, l.cells[i].null...)
			continue
		default:
			buf = f.AppendText(buf, *v)
		}
		buf = l.endField(buf, at, l.cells[i].marks)
	}
	l.buf = buf
	return nil
}

func (l *encoded) endField(buf []byte, at int, marks [][]byte) []byte {
	if !l.quoteAll && !l.needsQuotes(buf[at:]) && !isMark(buf[at:], marks) && (l.escape == 0 || bytes.IndexByte(buf[at:], l.escape) < 0) {
		return buf
	}
	l.field = append(l.field[:0], buf[at:]...)
	return l.inQuotes(buf[:at], l.field)
}

func isMark(text []byte, marks [][]byte) bool {
	for _, mark := range marks {
		if bytes.Equal(text, mark) {
			return true
		}
	}
	return false
}

func (l *encoded) inQuotes(buf, text []byte) []byte {
	buf = append(buf, l.quote)
	if l.escape != 0 {
		for _, c := range text {
			if c == l.quote || c == l.escape {
				buf = append(buf, l.escape)
			}
			buf = append(buf, c)
		}
		return append(buf, l.quote)
	}
	for {
		q := bytes.IndexByte(text, l.quote)
		if q < 0 {
			break
		}
		buf = append(append(buf, text[:q+1]...), l.quote)
		text = text[q+1:]
	}
	return append(append(buf, text...), l.quote)
}

func (l *encoded) needsQuotes(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if text[0] == ' ' || text[0] == '\t' || text[len(text)-1] == ' ' {
		return true
	}
	for _, c := range text {
		if l.special[c] {
			return true
		}
	}
	return l.wide && bytes.Contains(text, []byte(l.comma))
}

func (l *encoded) endRecord(start int) error {
	l.buf = append(l.buf, l.end...)
	if l.enc.IsUTF8() {
		return nil
	}
	text, err := l.enc.Append(l.field[:0], l.buf[start:])
	if err != nil {
		return err
	}
	l.buf, l.field = append(l.buf[:start], text...), text
	return nil
}
