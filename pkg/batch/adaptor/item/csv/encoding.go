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
	line   []byte
	buf    []byte // all lines
}

// EncodeRecords replaces what is there.
func (l *encoded) EncodeRecords(schema *row.Schema, records [][]row.Value) error {
	l.schema, l.buf = schema, l.buf[:0]
	for _, record := range records {
		l.line = l.line[:0]
		for i, v := range record {
			f := schema.Field(i)
			if v.IsNull() && f.Nulls == nil {
				l.field = append(l.field[:0], l.nulls...)
			} else {
				if err := v.Finite(); err != nil { // the reader would refuse its text
					return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("field %s: %w", f.Name, err))
				}
				l.field = f.AppendText(l.field[:0], v)
			}
			l.appendField(i, len(record), l.field)
		}
		if err := l.endRecord(); err != nil {
			return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("record %.80q: %w", l.line, err))
		}
	}
	return nil
}

func (l *encoded) appendField(i, n int, text []byte) {
	if i > 0 {
		l.line = utf8.AppendRune(l.line, l.comma)
	}
	if !l.quoteAll && !l.needsQuotes(n, text) {
		l.line = append(l.line, text...)
		return
	}
	l.line = append(l.line, '"')
	for {
		q := bytes.IndexByte(text, '"')
		if q < 0 {
			break
		}
		l.line = append(append(l.line, text[:q+1]...), '"')
		text = text[q+1:]
	}
	l.line = append(append(l.line, text...), '"')
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

func (l *encoded) endRecord() error {
	l.line = append(l.line, l.end...)
	text, err := l.enc.Encode(l.line)
	if err != nil {
		return err
	}
	l.buf = append(l.buf, text...)
	return nil
}
