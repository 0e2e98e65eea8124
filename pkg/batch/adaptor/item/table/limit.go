package table

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// limit is a rule by which a database changes values of a column without an error: it rounds timestamp(0) and
// real, and cuts blanks off for varchar(2). Columns without a limit store every value of their kind
// unchanged.
type limit struct {
	// keep returns the value that the column stores for v, and how it compares with v.
	keep func(v row.Value) (row.Value, change)
	// why completes the message about a value that would be changed.
	why string
	// from is the only kind that is changed; Null means any.
	from row.Kind
}

// change is the effect of a column on a value.
type change uint8

const (
	// unchanged: the column stores the value.
	unchanged change = iota
	// rounded: the column stores another value.
	rounded
	// unfit: the column has no value for it, or only the database knows which one.
	unfit
)

// ofElements is the limit for an array: each element must keep its value.
func (l *limit) ofElements() *limit {
	return &limit{why: l.why, keep: func(v row.Value) (row.Value, change) {
		for _, e := range v.Elements() {
			if e.IsNull() {
				continue
			}
			if _, c := l.keep(e); c != unchanged {
				return v, unfit
			}
		}
		return v, unchanged
	}}
}

// ofLength is the limit of varchar(n) and char(n), which cut off blanks beyond n characters. char(n) ignores
// trailing blanks, so it keeps the value. Other texts that are too long are errors of the database already;
// here they name the item.
func ofLength(n int, blanksCount bool) *limit {
	return &limit{from: row.String, why: fmt.Sprintf("the column has %d characters", n), keep: func(v row.Value) (row.Value, change) {
		if v.Kind() != row.String || len(v.Str()) <= n || utf8.RuneCountInString(v.Str()) <= n {
			return v, unchanged
		}
		text := v.Str()
		at := 0
		for range n {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		}
		switch {
		case strings.Trim(text[at:], " ") != "":
			return v, unfit
		case blanksCount:
			return row.StringValue(text[:at]), rounded
		}
		return v, unchanged
	}}
}

// onlyTexts is the limit of a column that takes texts of one form and has a type without a row.Kind.
func onlyTexts(why string, fits func(text string) bool) *limit {
	return &limit{why: why, keep: func(v row.Value) (row.Value, change) {
		if v.Kind() == row.String && fits(v.Str()) {
			return v, unchanged
		}
		return v, unfit
	}}
}

// ofText is the limit of a column that takes values of every kind with a fitting text.
func ofText(why string, fits func(text string) bool) *limit {
	return &limit{why: why, keep: func(v row.Value) (row.Value, change) {
		if fits(v.String()) {
			return v, unchanged
		}
		return v, unfit
	}}
}

// numericAffinity is the limit of a SQLite column that turns texts into numbers.
func numericAffinity() *limit {
	return &limit{
		from: row.String,
		why:  "SQLite converts it to a number in a column of this type; declare the column text",
		keep: func(v row.Value) (row.Value, change) {
			if v.Kind() == row.String && sqlvalue.ChangesAsNumber(v.Str()) {
				return v, unfit
			}
			return v, unchanged
		},
	}
}
