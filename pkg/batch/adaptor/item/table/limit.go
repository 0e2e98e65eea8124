package table

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// limit is a rule by which a database silently changes values of a column: it
// rounds timestamp(0) and real, and cuts blanks off for varchar(2).
type limit struct {
	keep func(v row.Value) (row.Value, change)
	why  string
	// from is the only kind that is changed; Null means any.
	from row.Kind
}

type change uint8

const (
	// unchanged: the column stores the value.
	unchanged change = iota
	rounded
	unfit
)

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

// ofLength is the limit of varchar(n) and char(n), which cut off blanks beyond
// n characters. char(n) ignores trailing blanks, so it keeps the value.
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

func onlyTexts(why string, fits func(text string) bool) *limit {
	return &limit{why: why, keep: func(v row.Value) (row.Value, change) {
		if v.Kind() == row.String && fits(v.Str()) {
			return v, unchanged
		}
		return v, unfit
	}}
}

func ofText(why string, fits func(text string) bool) *limit {
	return &limit{why: why, keep: func(v row.Value) (row.Value, change) {
		if fits(v.String()) {
			return v, unchanged
		}
		return v, unfit
	}}
}

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
