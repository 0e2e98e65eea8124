package csv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (r *reader) bind() error {
	if err := r.findColumns(); err != nil {
		return err
	}
	r.bare, r.quoted, r.isText = make([]row.Field, len(r.index)), make([]row.Field, len(r.index)), make([]bool, len(r.index))
	for i := range r.index {
		f := r.schema.Field(i)
		r.bare[i], r.quoted[i] = *f, *f
		r.bare[i].Nulls, r.quoted[i].Nulls = bareNulls(f, r.cfg.Nulls), quotedNulls(f)
		isMarker := func(text string) bool { return text != "" }
		r.isText[i] = f.Kind == row.String && !f.Exact && !slices.ContainsFunc(r.bare[i].Nulls, isMarker) && !slices.ContainsFunc(r.quoted[i].Nulls, isMarker)
	}
	r.setWidth(r.width)
	return nil
}

// In a file of one column, an empty line is a record if its field may be null.
func (r *reader) setWidth(n int) {
	r.width = n
	first := slices.Index(r.index, 0)
	r.csv.blanks = first >= 0 && r.schema.Field(first).Nullable && (n == 1 || n == 0 && len(r.index) == 1)
}

// learnWidth takes the width of the first record, before the offset.
func (r *reader) learnWidth(ctx context.Context, before int64) error {
	for r.width == 0 && r.next < before {
		_, err := r.record(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && len(r.csv.fields) >= len(r.index):
			r.setWidth(len(r.csv.fields))
		case err != nil && !item.IsConsumed(err):
			return err
		}
	}
	return nil
}

func (r *reader) findColumns() error {
	switch {
	case r.cfg.Columns > 0:
		r.width, r.columns = r.cfg.Columns, columnNames(r.cfg.Columns)
	case r.columns != nil:
		r.width = len(r.columns)
	}
	if !r.needsHead() {
		if r.width > 0 && r.width < r.want.Len() {
			return fmt.Errorf("%s: the records have %d fields, but the item has %d", r.cfg.Path, r.width, r.want.Len())
		}
		r.index = make([]int, r.want.Len())
		for i := range r.index {
			r.index[i] = i
		}
		return nil
	}
	if err := r.checkColumns(); err != nil {
		return err
	}
	if !r.want.IsOpen() {
		r.index = make([]int, r.want.Len())
		for i := range r.index {
			r.index[i], _ = columnOf(r.columns, r.want.Field(i).Source(), r.cfg.Header)
		}
		return nil
	}
	fields := make([]row.Field, len(r.columns))
	r.index = make([]int, len(r.columns))
	for i, name := range r.columns {
		r.index[i] = i
		fields[i] = row.Field{Name: name, Kind: row.String}
		if name == "" {
			fields[i].Name = fmt.Sprintf("column%d", i+1)
		}
		for k := range r.want.Len() {
			if at, _ := columnOf(r.columns, r.want.Field(k).Source(), r.cfg.Header); at == i {
				fields[i] = *r.want.Field(k)
			}
		}
	}
	schema, err := row.NewSchema(fields...)
	if err != nil {
		return fmt.Errorf("%s: its header: %w", r.cfg.Path, err)
	}
	r.schema = schema
	return nil
}

func (r *reader) checkColumns() error {
	var errs []error
	if other := r.otherDelimiter(); other != "" {
		return fmt.Errorf("%s: its header is one column, %q: if %[3]q separates the columns, set delimiter: %[3]q", r.cfg.Path, r.columns[0], other)
	}
	for i := range r.want.Len() {
		f := r.want.Field(i)
		first, twice := columnOf(r.columns, f.Source(), r.cfg.Header)
		switch {
		case first < 0 && f.Optional:
		case first < 0:
			errs = append(errs, r.missing(f))
		case twice:
			errs = append(errs, fmt.Errorf("%s: column %q is there twice (field %s)", r.cfg.Path, f.Source(), f.Name))
		}
	}
	return errors.Join(errs...)
}

// With a loose header a column with the exact name takes precedence.
func columnOf(columns []string, name, header string) (first int, twice bool) {
	if first = slices.Index(columns, name); first >= 0 {
		return first, slices.Contains(columns[first+1:], name)
	}
	if header != headerLoose {
		return -1, false
	}
	same := func(column string) bool { return loose(column) == loose(name) }
	if first = slices.IndexFunc(columns, same); first < 0 {
		return -1, false
	}
	return first, slices.ContainsFunc(columns[first+1:], same)
}

// loose removes case, blanks, no-break spaces and zero-width characters.
func loose(name string) string {
	return strings.ToLower(strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '\uFEFF' || c == '\u200B' {
			return -1
		}
		return c
	}, name))
}

func (r *reader) checkUnknown() error {
	if r.want.IsOpen() || r.cfg.Unknown != unknownError && r.cfg.Unknown != unknownWarn {
		return nil
	}
	var names []string
	for i, name := range r.columns {
		if !slices.Contains(r.index, i) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	list := shortList(names)
	if r.cfg.Unknown == unknownError {
		return fmt.Errorf("%s: the item has no field for the columns %s (set unknown: ignore to leave them out)", r.cfg.Path, list)
	}
	if r.context == nil {
		return nil
	}
	return core.Warn(r.context(), fmt.Sprintf("%s: columns not read, because the item has no field for them: %s", r.cfg.Path, list))
}

// otherDelimiter returns the probable delimiter of a header that was read as one column, or empty.
func (r *reader) otherDelimiter() string {
	if len(r.columns) != 1 || r.want.Len() == 0 {
		return ""
	}
	if only, _ := columnOf(r.columns, r.want.Field(0).Source(), r.cfg.Header); only == 0 {
		return ""
	}
	for _, other := range []string{";", "\t", "|", ","} {
		if strings.Contains(r.columns[0], other) {
			return strings.ReplaceAll(other, "\t", "tab")
		}
	}
	return ""
}

func (r *reader) missing(f *row.Field) error {
	hint := "its columns are " + shortList(r.columns)
	if near := nearest.Name(f.Source(), r.columns); near != "" {
		hint = fmt.Sprintf("nearest: %q", near)
	}
	for _, column := range r.columns {
		if r.cfg.Header != headerLoose && loose(column) == loose(f.Source()) {
			hint = fmt.Sprintf("nearest: %q; header: loose accepts it", column)
			break
		}
	}
	return fmt.Errorf("%s has no column %q for field %s (%s)", r.cfg.Path, f.Source(), f.Name, hint)
}

func shortList(names []string) string {
	const maxNames = 12
	quoted := make([]string, 0, maxNames+1)
	for i, name := range names {
		if i == maxNames {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
