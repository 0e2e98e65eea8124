package gormdb

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type bird struct {
	ID   int `gorm:"primaryKey"`
	Name string
}

func (bird) TableName() string { return "bird" }

func inTransaction(t *testing.T, db tx.Database, f func(g *gorm.DB) error) error {
	t.Helper()
	return tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		g, err := Session(ctx, db)
		require.NoError(t, err)
		return f(g)
	})
}

func TestAGormSessionWorksOnTheCurrentTransaction(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		failure := errors.New("no")
		err := inTransaction(t, db, func(g *gorm.DB) error {
			require.NoError(t, g.Create(&bird{ID: 7, Name: "lark"}).Error)
			var found bird
			require.NoError(t, g.First(&found, 7).Error)
			require.Equal(t, "lark", found.Name)
			require.Equal(t, 3, count(t, db.Conn()))
			return failure
		})
		require.ErrorIs(t, err, failure)
		require.Equal(t, 3, count(t, db.Conn()))
	})
}

func TestAGormSessionWorksWithoutATransaction(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		g, err := Session(t.Context(), db)
		require.NoError(t, err)
		require.NoError(t, g.Create(&[]bird{{ID: 7, Name: "lark"}, {ID: 8, Name: "dove"}}).Error)
		require.NoError(t, g.Where("id = ?", 8).Delete(&bird{}).Error)
		require.Equal(t, 4, count(t, db.Conn()))
		require.Error(t, g.Begin().Error)
		require.Error(t, g.Transaction(func(*gorm.DB) error { return nil }))
	})
}

func TestGormCannotEndTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		require.NoError(t, inTransaction(t, db, func(g *gorm.DB) error {
			require.NoError(t, g.Create(&bird{ID: 7}).Error)
			require.ErrorIs(t, g.Session(&gorm.Session{}).Commit().Error, tx.ErrNotOwner)
			require.ErrorIs(t, g.Session(&gorm.Session{}).Rollback().Error, tx.ErrNotOwner)
			require.Error(t, g.Session(&gorm.Session{}).Begin().Error)
			_, err := g.DB()
			require.Error(t, err, "nobody keeps the pool")
			return g.Create(&bird{ID: 8}).Error
		}))
		require.Equal(t, 5, count(t, db.Conn()))
	})
}

func TestGormTransactionInATransactionIsASavepoint(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		require.NoError(t, inTransaction(t, db, func(g *gorm.DB) error {
			err := g.Transaction(func(g *gorm.DB) error {
				require.NoError(t, g.Create(&bird{ID: 7}).Error)
				return g.Create(&bird{ID: 1}).Error // a duplicate
			})
			require.ErrorIs(t, err, gorm.ErrDuplicatedKey)
			return g.Transaction(func(g *gorm.DB) error { return g.Create(&bird{ID: 9}).Error })
		}))
		require.Equal(t, 4, count(t, db.Conn()))
	})
}

func TestASavepointThatFailsIsReportedThroughGorm(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		require.Error(t, inTransaction(t, db, func(g *gorm.DB) error {
			require.Error(t, g.Session(&gorm.Session{}).RollbackTo("nowhere").Error)
			return errors.New("PostgreSQL has given up this transaction")
		}))
	})
}

func TestGormErrorsAreTranslatedByCode(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		exec(t, db.Conn(), "CREATE TABLE egg (id integer PRIMARY KEY, bird integer REFERENCES bird (id), weight integer CHECK (weight > 0))")
		exec(t, db.Conn(), "CREATE UNIQUE INDEX one_egg ON egg (bird)")
		exec(t, db.Conn(), "INSERT INTO egg VALUES (1, 1, 1)")
		g, err := Session(t.Context(), db)
		require.NoError(t, err)
		require.ErrorIs(t, g.Create(&bird{ID: 1}).Error, gorm.ErrDuplicatedKey)
		require.ErrorIs(t, g.Exec("INSERT INTO egg VALUES (2, 1, 1)").Error, gorm.ErrDuplicatedKey)
		require.ErrorIs(t, g.Exec("INSERT INTO egg VALUES (2, 99, 1)").Error, gorm.ErrForeignKeyViolated)
		require.ErrorIs(t, g.Exec("INSERT INTO egg VALUES (2, 2, 0)").Error, gorm.ErrCheckConstraintViolated)
	})
}

func TestGormPreparedStatementsAreRefused(t *testing.T) {
	each(t, func(t *testing.T, _ *DBProvider, db tx.Database) {
		refused := func(g *gorm.DB) {
			var n int64
			err := g.Session(&gorm.Session{PrepareStmt: true}).Model(&bird{}).Count(&n).Error
			require.ErrorIs(t, err, gormtx.ErrPrepared)
		}
		g, err := Session(t.Context(), db)
		require.NoError(t, err)
		refused(g)
		require.NoError(t, inTransaction(t, db, func(g *gorm.DB) error {
			refused(g)
			return nil
		}))
		g, err = Session(t.Context(), db)
		require.NoError(t, err)
		require.NoError(t, g.First(&bird{}, 1).Error, "the next session is as ever")
	})
}
