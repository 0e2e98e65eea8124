// Package txtest is the conformance suite of tx.Database: it drives tx.Manager over a real database and
// proves the propagation rules (T1 to T4, T8, T9), the effect of each mode at the end of a transaction,
// and the refusals.
//
// A package that implements tx.Provider runs it from its tests, for each database:
//
//	txtest.Run(t, func(t *testing.T) tx.Provider { ... })
//
// It imports tx and testify. Only tests import it.
package txtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Run runs the suite on empty, private databases tx.Default, closed by their test.
func Run(t *testing.T, open func(t *testing.T) tx.Provider) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"propagation", propagation},
		{"end", ends},
		{"refusal", refusals},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, one := range group.tests {
				t.Run(one.name, func(t *testing.T) {
					t.Parallel()
					one.run(newBed(t, open(t)))
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(b *bed)
}

type bed struct {
	*testing.T
	db      tx.Database
	manager *tx.Manager
}

func newBed(t *testing.T, p tx.Provider) *bed {
	db, err := p.Database(tx.Default)
	require.NoError(t, err)
	_, err = db.Conn().ExecContext(t.Context(), "CREATE TABLE txtest (id integer PRIMARY KEY)")
	require.NoError(t, err)
	return &bed{T: t, db: db, manager: tx.NewManager(db)}
}

var errWork = errors.New("the work failed")

func (b *bed) do(ctx context.Context, p tx.Propagation, fn func(ctx context.Context) error) error {
	return b.manager.Do(ctx, tx.Attr{Propagation: p}, fn)
}

func (b *bed) insert(ctx context.Context, id int) error {
	_, err := tx.ConnOf(ctx, b.db).ExecContext(ctx, "INSERT INTO txtest (id) VALUES ("+b.db.Dialect().Placeholder(1)+")", id)
	return err
}

func (b *bed) inserting(id int) func(context.Context) error {
	return func(ctx context.Context) error { return b.insert(ctx, id) }
}

func (b *bed) failing(id int) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(b.insert(ctx, id), errWork) }
}

func (b *bed) rows(conn tx.Conn) []int {
	b.Helper()
	rows, err := conn.QueryContext(b.Context(), "SELECT id FROM txtest ORDER BY id")
	require.NoError(b, err)
	defer func() { require.NoError(b, rows.Close()) }()
	ids := []int{}
	for rows.Next() {
		var id int
		require.NoError(b, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(b, rows.Err())
	return ids
}

func (b *bed) committed(ids ...int) {
	b.Helper()
	if ids == nil {
		ids = []int{}
	}
	require.Equal(b, ids, b.rows(b.db.Conn()))
}
