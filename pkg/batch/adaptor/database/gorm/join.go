package gormdb

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Transaction runs fn in a transaction of the application's own gorm, which ctx within fn carries as the
// current one of db (rule SM5). If joined work has failed, it is rolled back even if fn returns nil
// (*tx.RollbackOnlyError). own must be on the same database as db, and not within a transaction.
func Transaction(ctx context.Context, db tx.Database, own *gorm.DB, fn func(ctx context.Context, session *gorm.DB) error) error {
	if _, within := own.Statement.ConnPool.(gorm.TxCommitter); within {
		return fmt.Errorf("database %s: gorm is already within a transaction (use Join to join it): %w", db.Name(), tx.ErrTransaction)
	}
	ended, committed := func(bool) {}, false
	defer func() { ended(committed) }() // also after a panic, for which gorm rolls back
	err := own.WithContext(ctx).Transaction(func(session *gorm.DB) error {
		joined, done, err := Join(ctx, db, session)
		if err != nil {
			return err
		}
		ended = done
		if err := fn(joined, session.WithContext(joined)); err != nil {
			return err
		}
		return tx.RollbackOnly(joined, db.Name())
	})
	committed = err == nil
	return err
}

// Join is tx.Join with the transaction of session, from gorm's Transaction or Begin. A session without a
// transaction is refused.
func Join(ctx context.Context, db tx.Database, session *gorm.DB) (joined context.Context, ended func(committed bool), err error) {
	own, ok := session.Statement.ConnPool.(tx.Own)
	if !ok {
		return nil, nil, fmt.Errorf("database %s: join: gorm is not within a transaction (its connection is a %T): begin one with Transaction or Begin", db.Name(), session.Statement.ConnPool)
	}
	return tx.Join(ctx, db, own)
}
