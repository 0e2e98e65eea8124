package gormdb

import (
	"context"
	"fmt"
	"sync"

	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Session returns gorm on the current transaction of db, or on db itself without one. It is valid as long
// as the transaction. Its Begin, Commit and Rollback refuse, as only the owner ends a transaction (rule
// T8); Transaction within a transaction is a savepoint. PrepareStmt is refused (rule T7), gorm's own
// transaction around each write is off, and errors are translated to gorm.ErrDuplicatedKey and the like. On
// SQLite gorm's Migrator is refused.
func Session(ctx context.Context, db tx.Database) (*gorm.DB, error) {
	own, ok := ownOf(db)
	if !ok {
		return nil, fmt.Errorf("database %s is a %T, which has no gorm session", db.Name(), db)
	}
	base, err := own.gorm.base(own)
	if err != nil {
		return nil, err
	}
	return gormtx.Session(ctx, base, db), nil
}

func ownOf(db tx.Database) (*database, bool) {
	for {
		if own, ok := db.(*database); ok {
			return own, true
		}
		decorated, ok := db.(interface{ Unwrap() tx.Database })
		if !ok {
			return nil, false
		}
		db = decorated.Unwrap()
	}
}

// sessions is copied, since making a gorm.DB registers its callbacks again.
type sessions struct {
	once sync.Once
	db   *gorm.DB
	err  error
}

func (s *sessions) base(db *database) (*gorm.DB, error) {
	s.once.Do(func() {
		s.db, s.err = gormtx.Open(db, gormtx.Options{TranslateError: true})
	})
	return s.db, s.err
}
