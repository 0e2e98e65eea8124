package csv

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// form says how a record is a line. It does not change.
type form struct {
	nulls    string
	quoteAll bool
	comma    rune
	// special are the bytes that a field has in quotes only.
	special [256]bool
	end     string
}

// encoded is records as the bytes of a file: an item.RecordEncoding.
type encoded struct {
	*form
	enc    *filestream.Encoder
	schema *row.Schema // of the records
	field  []byte
	buf    []byte // all lines
}

// EncodeRecords replaces what is there.
func (l *encoded) EncodeRecords(schema *row.Schema, records [][]row.Value) error {
	l.schema, l.buf = schema, l.buf[:0]
	for _, record := range records {
		start := len(l.buf)
		for i, v := range record {
			f := schema.Field(i)
			at := l.beginField(i)
			if v.IsNull() && f.Nulls == nil {
				l.buf = append(l.buf, l.nulls...)
			} else {
				if err := v.Finite(); err != nil { // the reader would refuse its text
					return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("field %s: %w", f.Name, err))
				}
				l.buf = f.AppendText(l.buf, v)
			}
			l.endField(at, len(record))
		}
		if err := l.endRecord(start); err != nil {
			return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("record %.80q: %w", l.buf[start:], err))
		}
	}
	return nil
}

// beginField returns where field i begins.
func (l *encoded) beginField(i int) (at int) {
	if i > 0 {
		l.buf = utf8.AppendRune(l.buf, l.comma)
	}
	return len(l.buf)
}

// endField puts quotes around the field from at on where it needs them. The record has n fields.
func (l *encoded) endField(at, n int) {
	if !l.quoteAll && !l.needsQuotes(n, l.buf[at:]) {
		return
	}
	l.field = append(l.field[:0], l.buf[at:]...)
	l.buf = append(l.buf[:at], '"')
	text := l.field
	for {
		q := bytes.IndexByte(text, '"')
		if q < 0 {
			break
		}
		l.buf = append(append(l.buf, text[:q+1]...), '"')
		text = text[q+1:]
	}
	l.buf = append(append(l.buf, text...), '"')
}

// needsQuotes reports whether the field would be read differently without.
func (l *encoded) needsQuotes(n int, text []byte) bool {
	if len(text) == 0 {
		return n == 1 // an empty line is not a record
	}
	if text[0] == ' ' || text[0] == '\t' || text[len(text)-1] == ' ' {
		return true
	}
	for _, c := range text {
		if l.special[c] {
			return true
		}
	}
	return l.comma >= utf8.RuneSelf && bytes.ContainsRune(text, l.comma)
}

// endRecord ends the line from start on, and turns it into the file's encoding.
func (l *encoded) endRecord(start int) error {
	l.buf = append(l.buf, l.end...)
	text, err := l.enc.Encode(l.buf[start:])
	if err != nil {
		return err
	}
	l.buf = append(l.buf[:start], text...)
	return nil
}
