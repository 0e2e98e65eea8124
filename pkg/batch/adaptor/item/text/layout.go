package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Column is where a field stands in a line, and how it is filled up.
type Column struct {
	At       string `key:"at" main:"true" required:"true" doc:"The characters of the line that it takes, from 1: FIRST-LAST, or one number."`
	Align    string `key:"align" enum:"left,right" doc:"Where the value stands; without it numbers stand right and the rest left."`
	Pad      string `key:"pad" default:" " doc:"The character that fills the column up. A blank line of it is an empty text; a number filled up with zeros keeps its last."`
	Decimals *int   `key:"decimals" doc:"Of a decimal: how many of the digits stand behind a point that is not written (an implied point): 12.50 is 1250 where it is 2."`
	// Overflow is of the writer only.
	Overflow string `key:"overflow" default:"error" enum:"error,cut" doc:"What the writer does with a value that is longer: the item is invalid, or its text is cut. A number is never cut."`
}

// span is a range of characters in a line, from 1, both ends included.
type span struct{ first, last int }

func (s span) width() int { return s.last - s.first + 1 }

func (s span) String() string { return fmt.Sprintf("%d-%d", s.first, s.last) }

// maxWidth is the most characters of a line.
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

// cell is a column, bound to its field.
type cell struct {
	span
	name   string
	field  int // of the schema
	right  bool
	number bool
	pad    rune
	cut    bool
	// decimals are the digits behind a point that is not written; -1: it is.
	decimals int
}

// layout is what the lines of a file look like.
type layout struct {
	mark  string // that each record begins with
	cells []cell // by their place
	width int    // where the last one ends
}

// newLayout binds columns to the fields of a schema. Those of a reader must have all of them.
func newLayout(columns map[string]Column, mark string, schema *row.Schema, reading bool) (*layout, error) {
	l := &layout{mark: mark, width: utf8.RuneCountInString(mark)}
	var errs []error
	for name, column := range columns {
		c, err := cellOf(name, column, schema)
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "columns." + name, Err: err})
			continue
		}
		l.cells = append(l.cells, c)
	}
	for i := range schema.Len() {
		f := schema.Field(i)
		if _, has := columns[f.Name]; !has && reading && !f.Optional {
			errs = append(errs, &registry.ConfigError{Key: "columns", Err: fmt.Errorf("the field %s of the item has none; give it one, such as %s: 1-9", f.Name, f.Name)})
		}
	}
	slices.SortFunc(l.cells, func(a, b cell) int { return cmp.Compare(a.first, b.first) })
	errs = append(errs, l.overlaps()...)
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, errors.Join(errs...)
}

func (l *layout) overlaps() (errs []error) {
	before, what := l.width, fmt.Sprintf("the text %q that a record begins with", l.mark)
	for _, c := range l.cells {
		if c.first <= before {
			errs = append(errs, &registry.ConfigError{Key: "columns." + c.name, Err: fmt.Errorf("it begins at %d, where %s still stands: that ends at %d", c.first, what, before)})
		}
		if c.last > before {
			before, what = c.last, "the column "+c.name
		}
	}
	l.width = before
	return errs
}

func cellOf(name string, column Column, schema *row.Schema) (cell, error) {
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
			return c, fmt.Errorf("decimals: an implied point is for a decimal, with 0 to %d digits behind it; the field is of type %s", row.MaxScale, kind)
		}
	}
	if column.Align != "" {
		c.right = column.Align == "right"
	}
	if column.Pad != "" {
		var size int
		if c.pad, size = utf8.DecodeRuneInString(column.Pad); size != len(column.Pad) || c.pad == utf8.RuneError || c.pad == '\n' || c.pad == '\r' {
			return c, fmt.Errorf("pad: %q is not one character that can stand in a line", column.Pad)
		}
	}
	if c.number && !c.right && c.pad >= '0' && c.pad <= '9' {
		return c, fmt.Errorf("pad: %q behind a number would make it another one; align it right, or take another character", column.Pad)
	}
	return c, nil
}

// line is the text of a line, cut into columns by characters.
type line struct {
	text  string
	runes []rune // unless each character is one byte
	size  int    // in characters
}

func lineOf(text string) line {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			runes := []rune(text)
			return line{text: text, runes: runes, size: len(runes)}
		}
	}
	return line{text: text, size: len(text)}
}

// at returns the characters of the span that the line has.
func (l line) at(s span) string {
	first, last := min(s.first-1, l.size), min(s.last, l.size)
	if l.runes != nil {
		return string(l.runes[first:last])
	}
	return l.text[first:last]
}

// value returns the text of the column without what fills it up.
func (c cell) value(text string) string {
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

// appendTo appends the text of a value, filled up to the column's width.
func (c cell) appendTo(dst []byte, text string) ([]byte, error) {
	size := utf8.RuneCountInString(text)
	if strings.ContainsAny(text, "\r\n") {
		return dst, fmt.Errorf("field %s: its text has a line end, and the file has a line for each record", c.name)
	}
	if size > c.width() {
		if !c.cut || c.number {
			return dst, fmt.Errorf("field %s: %d characters, and its column has %d (at %s)", c.name, size, c.width(), c.span)
		}
		text = string([]rune(text)[:c.width()])
		size = c.width()
	}
	if !c.right {
		return c.fill(append(dst, text...), c.width()-size), nil
	}
	if c.pad == '0' && (strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+")) && c.number {
		dst, text = append(dst, text[0]), text[1:]
	}
	return append(c.fill(dst, c.width()-size), text...), nil
}

func (c cell) fill(dst []byte, n int) []byte {
	for range n {
		dst = utf8.AppendRune(dst, c.pad)
	}
	return dst
}
