package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// refuseDuplicates compares neighbouring keys: behind a page or a restart, the
// second of two rows with one key would never be read.
func (r *Reader) refuseDuplicates(ctx context.Context, p page) error {
	before, key := append([]row.Value(nil), r.done...), []row.Value(nil)
	for i := range p.len() {
		var err error
		if key, err = r.key(p, i, key); err != nil {
			return err
		}
		if len(before) > 0 && alike(before, key) {
			twice, err := r.same(ctx, before, key)
			if err != nil {
				return err
			}
			if twice {
				return fmt.Errorf("the key (%s) is not unique: there is more than one row with %s",
					strings.Join(r.config.Key, ", "), r.describe(key))
			}
		}
		before, key = key, before
	}
	return nil
}

// key returns the raw key of a row, in the memory of dst.
func (r *Reader) key(p page, at int, dst []row.Value) ([]row.Value, error) {
	dst = dst[:0]
	for i, column := range r.keys {
		v, err := p.raw(at, column)
		if err == nil {
			err = sqlvalue.Check(v)
		}
		if err == nil && v.IsNull() {
			err = errors.New("it is null in some row")
		}
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", r.config.Key[i], err)
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// same reports whether two keys that look alike are equal to the database. Where
// they differ to us, only the database knows (NOCASE, citext, 1.0 and 1.00): of
// equal ones the second is not behind the first.
func (r *Reader) same(ctx context.Context, a, b []row.Value) (bool, error) {
	equal := true
	for i := range a {
		equal = equal && a[i] == b[i]
	}
	if equal {
		return true, nil
	}
	n := len(r.args)
	args := append([]any(nil), r.args...)
	keys, low, high := make([]string, len(a)), make([]string, len(a)), make([]string, len(a))
	for i := range a {
		args = append(args, r.engine.bind(a[i]), r.engine.bind(b[i]))
		keys[i] = r.keyColumn(i)
		low[i], high[i] = r.db.Dialect().Placeholder(n+2*i+1), r.db.Dialect().Placeholder(n+2*i+2)
	}
	list := strings.Join(keys, ", ")
	text := fmt.Sprintf("select exists (select 1 from (\n%s\n) q where (%s) > (%s) and (%s) = (%s))",
		r.sql, list, strings.Join(low, ", "), list, strings.Join(high, ", "))
	var behind bool
	if err := r.db.Conn().QueryRowContext(ctx, text, args...).Scan(&behind); err != nil {
		return false, fmt.Errorf("compare keys: %w", err)
	}
	return !behind, nil
}

// alike reports whether a database might take two keys as equal.
func alike(a, b []row.Value) bool {
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if kind := a[i].Kind(); kind == b[i].Kind() && (kind == row.Int || kind == row.DateKind || kind == row.Timestamp) {
			return false
		}
		s, t := strings.TrimRight(a[i].String(), " "), strings.TrimRight(b[i].String(), " ")
		if strings.EqualFold(s, t) {
			continue
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return false
		}
		if y, err := strconv.ParseFloat(t, 64); err != nil || x != y {
			return false
		}
	}
	return true
}

// keyOf describes the key of a row of the page, for messages.
func (r *Reader) keyOf(at int) string {
	key, err := r.key(r.page, at, nil)
	if err != nil {
		return err.Error() // cannot be: it was decoded when the page came
	}
	return r.describe(key)
}

func (r *Reader) describe(key []row.Value) string {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = r.config.Key[i] + " " + v.String()
	}
	return strings.Join(parts, ", ")
}
