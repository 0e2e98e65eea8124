package csv

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// bind finds the column of each field, and completes an open schema.
func (r *reader) bind() error {
	if !r.needsHead() {
		r.index = make([]int, r.want.Len())
		for i := range r.index {
			r.index[i] = i
		}
		return nil
	}
	r.width = len(r.columns)
	if err := r.checkColumns(); err != nil {
		return err
	}
	if !r.want.IsOpen() {
		r.index = make([]int, r.want.Len())
		for i := range r.index {
			r.index[i] = slices.Index(r.columns, r.want.Field(i).Source())
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
			if r.want.Field(k).Source() == name {
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

// checkColumns reports all fields that have no column, or more than one.
func (r *reader) checkColumns() error {
	var errs []error
	if other := r.otherDelimiter(); other != "" {
		return fmt.Errorf("%s: its header is one column, %q: if %[3]q stands between the columns, say delimiter: %[3]q", r.cfg.Path, r.columns[0], other)
	}
	for i := range r.want.Len() {
		f := r.want.Field(i)
		first := slices.Index(r.columns, f.Source())
		switch {
		case first < 0 && f.Optional:
		case first < 0:
			errs = append(errs, r.missing(f))
		case slices.Contains(r.columns[first+1:], f.Source()):
			errs = append(errs, fmt.Errorf("%s: column %q is there twice (field %s)", r.cfg.Path, f.Source(), f.Name))
		}
	}
	return errors.Join(errs...)
}

// otherDelimiter returns what seems to stand between the columns of a header that is one column;
// empty: the header is as it should be, or nothing does.
func (r *reader) otherDelimiter() string {
	if len(r.columns) != 1 || r.want.Len() == 0 || r.columns[0] == r.want.Field(0).Source() {
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
