package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Columns are named, so that a column added by a migration does not change a prepared statement's result.
func (r *reader) statements() {
	outputs := make([]string, len(r.columns))
	for i := range r.columns {
		outputs[i] = r.engine.output(&r.columns[i])
	}
	r.plain = r.pages(outputs, false)
	r.comparing = r.pages(outputs, true)
}
