package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// If adjacent keys may be equal to the database although they look different (accents and case, 1.0 and
// 1.00, '1 day' and '24:00'), fetchPage reads the page with the statement in which the database compares
// them.
func (r *reader) fetchPage(ctx context.Context) (page, error) {
	columns, statements := r.columns, r.plain
	if r.compares {
		columns, statements = append(slices.Clone(r.columns), r.engine.answer()), r.comparing
	}
	text, args := statements.first, r.args
	if len(r.done) > 0 {
		text, args = statements.next, append([]any(nil), r.args...)
		for _, v := range r.done {
			args = append(args, r.engine.bind(v))
		}
	}
	p, err := r.engine.fetch(ctx, r.db.Conn(), columns, text, args)
	if err != nil {
		return nil, r.explain(text, err)
	}
	unsure, err := r.refuseDuplicates(p)
	if err != nil || !unsure {
		return p, err
	}
	r.compares = true
	return r.fetchPage(ctx)
}

// After a page or a restart, the second of two rows with one key would never be read. unsure means that the
// database has to compare them.
func (r *reader) refuseDuplicates(p page) (unsure bool, err error) {
	before, key := append([]row.Value(nil), r.done...), []row.Value(nil)
	for i := range p.len() {
		if key, err = r.key(p, i, key); err != nil {
			return false, err
		}
		equal := slices.Equal(before, key)
		if r.compares && !equal {
			answer, err := p.raw(i, len(r.columns))
			if err != nil {
				return false, err
			}
			equal = answer == row.BoolValue(true) || answer == row.IntValue(1)
		}
		if equal {
			return false, r.notUnique(before, key)
		}
		// The database itself has decided that the first row comes after the last key.
		unsure = unsure || i > 0 && !r.compares && !r.differ(before, key)
		before, key = key, before
	}
	return unsure, nil
}

func (r *reader) notUnique(a, b []row.Value) error {
	text := fmt.Sprintf("the key (%s) is not unique: more than one row has %s", strings.Join(r.config.Key, ", "), r.describe(b))
	if !slices.Equal(a, b) {
		text += fmt.Sprintf(", which equals %s to the database", r.describe(a))
	}
	return errors.New(text + ": add columns to the key, or use `snapshot: true`, which reads without a key")
}

func (r *reader) differ(a, b []row.Value) bool {
	for i := range a {
		if r.columns[r.keys[i]].differ(a[i], b[i]) {
			return true
		}
	}
	return false
}

func (c *resultColumn) differ(a, b row.Value) bool {
	switch {
	case a == b:
		return false
	case c.exact:
		return true
	case a.Kind() != b.Kind():
		return false
	case c.isNumeric():
		return trimZeros(a.String()) != trimZeros(b.String())
	}
	return isExact(a.Kind())
}

func isExact(k row.Kind) bool {
	switch k {
	case row.Int, row.Float, row.Bool, row.DateKind, row.Timestamp, row.BytesKind:
		return true
	default:
		return false
	}
}

func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

func (r *reader) key(p page, at int, dst []row.Value) ([]row.Value, error) {
	dst = dst[:0]
	for i, column := range r.keys {
		v, err := p.raw(at, column)
		if err == nil {
			err = sqlvalue.Check(v)
		}
		if err == nil && v.IsNull() {
			err = errors.New("it is null in a row")
		}
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", r.order[i].name, err)
		}
		dst = append(dst, v)
	}
	return dst, nil
}

func (r *reader) keyOf(at int) string {
	if r.config.Snapshot {
		return fmt.Sprintf("number %d", r.read)
	}
	key, err := r.key(r.page, at, nil)
	if err != nil {
		return err.Error()
	}
	return r.describe(key)
}

func (r *reader) describe(key []row.Value) string {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = r.order[i].name + " " + v.String()
	}
	return strings.Join(parts, ", ")
}
