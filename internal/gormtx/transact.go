package gormtx

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	transactTries = 20
	transactPause = 20 * time.Millisecond
)

// Transact runs f in a transaction. One of its own is repeated after a deadlock, and f starts again each time: inserts of
// MySQL lock the gaps of unique indexes whatever the order of the rows (rule MY8), and a foreign key of PostgreSQL the
// row of another table.
func Transact(ctx context.Context, m *tx.Manager, attr tx.Attr, f func(ctx context.Context) error) error {
	_, joins := tx.From(ctx, m.Database().Name())
	for tries := 1; ; tries++ {
		err := m.Do(ctx, attr, f)
		if joins || !dberr.IsDeadlock(err) || tries == transactTries {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(rand.N(transactPause)): //nolint:gosec // no secret
		}
	}
}
