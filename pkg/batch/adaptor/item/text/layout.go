package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// columnConfig is the place of a field in a line, and its padding.
type columnConfig struct {
	At       string `key:"at" main:"true" required:"true" doc:"The characters of the line that the field occupies, from 1: FIRST-LAST, or one number. If the records have a length, the bytes of the record."`
	Align    string `key:"align" enum:"left,right" doc:"The alignment of the value; without it numbers are aligned right and other values left."`
	Pad      string `key:"pad" default:" " doc:"The character that fills the rest of the column. A column with nothing else is an empty text; a number padded with zeros keeps its last zero."`
	Decimals *int   `key:"decimals" doc:"Of a decimal: the number of digits after an implied point, one that is not written: with 2, 12.50 is 1250. The formats zoned, packed and binary of a decimal need it."`
	Format   string `key:"format" enum:"text,zoned,packed,binary" doc:"How a number is written; without it as text. zoned: a digit in each position, the sign in the last one ({ A to I and } J to R, or the zone of EBCDIC). packed (COMP-3): two digits in a byte, the sign in the last half. binary (COMP): two's complement of 1 to 8 bytes, the highest first. packed and binary need length."`
	Sign     string `key:"sign" enum:"trailing,leading,trailing_separate,leading_separate,none" doc:"The position of a zoned number's sign: in the last digit (trailing, the default), in the first, or as + or - after or before the digits. none: the number has no sign, which also packed and binary accept; a negative value is an invalid item."`
	// Overflow is for the writer only.
	Overflow string `key:"overflow" default:"error" enum:"error,cut" doc:"How the writer treats a value that is too long: the item is invalid, or the text is cut. A number is never cut."`
}

// characters from 1, both ends included
type span struct{ first, last int }

func (s span) width() int { return s.last - s.first + 1 }

func (s span) String() string { return fmt.Sprintf("%d-%d", s.first, s.last) }

const maxWidth = 1 << 20

func spanOf(text string) (span, error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, aerr := strconv.Atoi(strings.TrimSpace(first))
	b, berr := strconv.Atoi(strings.TrimSpace(last))
	if aerr != nil || berr != nil || a < 1 || b < a || b > maxWidth {
		return span{}, fmt.Errorf("%q is not FIRST-LAST with numbers from 1 to %d, such as 1-9", text, maxWidth)
	}
	return span{a, b}, nil
}

type cell struct {
	span
	name   string
	field  int
	right  bool
	number bool
	pad    rune
	cut    bool
	// digits after an implied decimal point; -1 means that the point is written
	decimals int
	form     form
	sign     sign
}

type layout struct {
	mark  string
	cells []cell
	width int
	shape
}

type shape struct {
	length int    // in bytes; 0 means that a record is a line
	codec  *codec // nil means that a record is a line
}

func shapeOf(length int, encoding filestream.EncodingName) (shape, error) {
	if length <= 0 {
		return shape{}, nil
	}
	c, err := newCodec(encoding)
	return shape{length: length, codec: c}, err
}

func (s shape) marked(text string) (string, error) {
	if s.codec == nil {
		return text, nil
	}
	raw, err := s.codec.encode(nil, text)
	return string(raw), err
}

// bytes or characters
func (s shape) unitOfPositions() string {
	if s.codec != nil {
		return "bytes"
	}
	return "characters"
}

// A reader's columns must include all fields.
func newLayout(columns map[string]columnConfig, mark string, s shape, schema *row.Schema, reading bool) (*layout, error) {
	l, errs := bindColumns(columns, mark, s, schema)
	for i := range schema.Len() {
		f := schema.Field(i)
		if _, has := columns[f.Name]; !has && reading && !f.Optional {
			errs = append(errs, &registry.ConfigError{Key: "columns", Err: fmt.Errorf("the field %s of the item has no column; give it one, such as %s: 1-9", f.Name, f.Name)})
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, errors.Join(errs...)
}

func bindColumns(columns map[string]columnConfig, mark string, s shape, schema *row.Schema) (*layout, []error) {
	l := &layout{mark: mark, width: utf8.RuneCountInString(mark), shape: s}
	var errs []error
	for name, column := range columns {
		c, err := cellOf(name, column, s, schema)
		if err == nil && s.length > 0 && c.last > s.length {
			err = fmt.Errorf("at: it ends at %d, but a record has %d bytes (length)", c.last, s.length)
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "columns." + name, Err: err})
			continue
		}
		l.cells = append(l.cells, c)
	}
	slices.SortFunc(l.cells, func(a, b cell) int { return cmp.Compare(a.first, b.first) })
	return l, append(errs, l.overlaps()...)
}

func (l *layout) overlaps() (errs []error) {
	before, what := l.width, fmt.Sprintf("the text %q that a record begins with", l.mark)
	for _, c := range l.cells {
		if c.first <= before {
			errs = append(errs, &registry.ConfigError{Key: "columns." + c.name, Err: fmt.Errorf("it begins at %d, inside %s, which ends at %d", c.first, what, before)})
		}
		if c.last > before {
			before, what = c.last, "the column "+c.name
		}
	}
	l.width = before
	return errs
}

func cellOf(name string, column columnConfig, s shape, schema *row.Schema) (cell, error) {
	at, err := spanOf(column.At)
	if err != nil {
		return cell{}, err
	}
	c := cell{span: at, name: name, field: schema.Index(name), pad: ' ', cut: column.Overflow == "cut", decimals: -1}
	if c.field < 0 {
		hint := "its fields are " + strings.Join(schema.Names(), ", ")
		if near := nearest.Name(name, schema.Names()); near != "" {
			hint = "did you mean " + near + "?"
		}
		return c, fmt.Errorf("the item has no field %s (%s)", name, hint)
	}
	kind := schema.Field(c.field).Kind
	c.number = kind == row.Int || kind == row.Float || kind == row.DecimalKind
	c.right = c.number
	if column.Decimals != nil {
		if c.decimals = *column.Decimals; kind != row.DecimalKind || c.decimals < 0 || c.decimals > row.MaxScale {
			return c, fmt.Errorf("decimals: an implied point needs a decimal, with 0 to %d digits after it; the field is of type %s", row.MaxScale, kind)
		}
	}
	if err := c.setForm(column, kind, s.length); err != nil {
		return c, err
	}
	if column.Align != "" {
		c.right = column.Align == "right"
	}
	if column.Pad != "" {
		var size int
		if c.pad, size = utf8.DecodeRuneInString(column.Pad); size != len(column.Pad) || c.pad == utf8.RuneError || c.pad == '\n' || c.pad == '\r' {
			return c, fmt.Errorf("pad: %q is not a single character that a line can contain", column.Pad)
		}
	}
	if c.number && !c.right && c.pad >= '0' && c.pad <= '9' {
		return c, fmt.Errorf("pad: %q after a number would change it; align it right, or choose another character", column.Pad)
	}
	if s.codec != nil {
		if raw, err := s.codec.encode(nil, string(c.pad)); err != nil || len(raw) != 1 {
			return c, fmt.Errorf("pad: %q is not one byte of the encoding", column.Pad)
		}
	}
	return c, nil
}

// cut by characters, or by bytes with a codec
type line struct {
	text  string
	runes []rune // unless each place is one byte
	size  int
	codec *codec
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (s shape) lineOf(text string) line {
	if s.codec == nil && !isASCII(text) {
		runes := []rune(text)
		return line{text: text, runes: runes, size: len(runes)}
	}
	return line{text: text, size: len(text), codec: s.codec}
}

func (l line) at(s span) string {
	first, last := min(s.first-1, l.size), min(s.last, l.size)
	if l.runes != nil {
		return string(l.runes[first:last])
	}
	return l.text[first:last]
}

func (l line) read(s span) (string, error) {
	if l.codec == nil {
		return l.at(s), nil
	}
	return l.codec.decode(l.at(s))
}

func (c *cell) value(text string) string {
	filler := string(c.pad)
	switch {
	case !c.right:
		return strings.TrimRight(text, filler)
	case c.pad != '0' || !c.number:
		return strings.TrimLeft(text, filler)
	}
	blank := strings.TrimLeft(text, " ")
	sign := ""
	if strings.HasPrefix(blank, "-") || strings.HasPrefix(blank, "+") {
		sign, blank = blank[:1], blank[1:]
	}
	digits := strings.TrimLeft(blank, "0")
	if digits == "" && blank != "" || strings.HasPrefix(digits, ".") {
		digits = "0" + digits
	}
	return sign + digits
}

func (c cell) appendTo(dst []byte, text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return dst, fmt.Errorf("field %s: its text has a line end, but each record is one line", c.name)
	}
	size := utf8.RuneCountInString(text)
	if size > c.width() {
		if !c.cut || c.number {
			return dst, c.tooLong(size, "characters")
		}
		text = string([]rune(text)[:c.width()])
		size = c.width()
	}
	return c.appendPadded(dst, []byte(text), hasSign(text), c.width()-size, func(dst []byte) []byte { return utf8.AppendRune(dst, c.pad) }), nil
}

func (c cell) appendBytes(dst []byte, of *codec, text string) ([]byte, error) {
	raw, err := of.encode(nil, text)
	if err != nil {
		return dst, fmt.Errorf("field %s: %w", c.name, err)
	}
	for len(raw) > c.width() {
		if !c.cut || c.number {
			return dst, c.tooLong(len(raw), "bytes")
		}
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
		if raw, err = of.encode(raw[:0], text); err != nil {
			return dst, fmt.Errorf("field %s: %w", c.name, err)
		}
	}
	pad, err := of.encode(nil, string(c.pad))
	if err != nil {
		return dst, fmt.Errorf("field %s: %w", c.name, err)
	}
	return c.appendPadded(dst, raw, hasSign(text), c.width()-len(raw), func(dst []byte) []byte { return append(dst, pad...) }), nil
}

func (c cell) tooLong(size int, places string) error {
	return fmt.Errorf("field %s: %d %s, but its column has %d (at %s)", c.name, size, places, c.width(), c.span)
}

func hasSign(text string) bool { return strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") }

// The text may begin with a sign; the padding is n times pad.
func (c cell) appendPadded(dst, text []byte, signed bool, n int, pad func([]byte) []byte) []byte {
	if !c.right {
		dst = append(dst, text...)
	} else if c.pad == '0' && c.number && signed {
		dst, text = append(dst, text[0]), text[1:]
	}
	for range n {
		dst = pad(dst)
	}
	if c.right {
		dst = append(dst, text...)
	}
	return dst
}
