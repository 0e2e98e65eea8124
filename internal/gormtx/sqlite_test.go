package gormtx

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"
)

type person struct {
	ID   int64 `gorm:"primaryKey;autoIncrement"`
	Name string
	Size int64 `gorm:"default:7"`
}

func open(t *testing.T) *gorm.DB {
	t.Helper()
	conn, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "test.db")+"?_foreign_keys=1")
	require.NoError(t, err)
	conn.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	db, err := gorm.Open(sqliteDialector{conn}, &gorm.Config{TranslateError: true, DisableAutomaticPing: true, Logger: logger.Discard})
	require.NoError(t, err)
	db = db.Session(&gorm.Session{Context: t.Context()})
	for _, s := range []string{
		"create table people (id integer primary key, name text unique, size integer default 7 check (size < 100))",
		"create table `odd ``name`` [1].x` (`group` text)", "create table pet (owner integer references people)",
	} {
		require.NoError(t, db.Exec(s).Error)
	}
	return db
}

func TestGormCreatesReadsChangesAndDeletes(t *testing.T) {
	t.Parallel()
	db := open(t)
	list := []person{{Name: "a"}, {ID: 10, Name: "b"}, {Name: "c", Size: 3}}
	require.NoError(t, db.Create(&list[0]).Error)
	require.NoError(t, db.Create(list[1:2]).Error)
	require.NoError(t, db.Create(&list[2]).Error)
	require.Equal(t, []person{{1, "a", 7}, {10, "b", 7}, {11, "c", 3}}, list, "what the database chose comes back")

	var page []person
	require.NoError(t, db.Clauses(clause.Locking{Strength: "UPDATE"}).Order("id").Offset(1).Find(&page).Error)
	require.Equal(t, list[1:], page, "an offset without a limit; a lock that SQLite has no word for")
	require.NoError(t, db.Order("id").Limit(1).Offset(1).Find(&page).Error)
	require.Equal(t, list[1:2], page)
	require.NoError(t, db.Limit(0).Find(&page).Error)
	require.Empty(t, page)

	require.NoError(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&person{ID: 1, Name: "z", Size: 2}).Error)
	var changed []person
	require.NoError(t, db.Model(&changed).Clauses(clause.Returning{}).Where("people.id = ?", 1).Update("size", 5).Error)
	require.Equal(t, []person{{1, "z", 5}}, changed)
	require.NoError(t, db.Delete(&person{}, 10).Error)
	var left int64
	require.NoError(t, db.Model(&person{}).Count(&left).Error)
	require.Equal(t, int64(2), left)
}

func TestAnyNameCanBeQuoted(t *testing.T) {
	t.Parallel()
	db := open(t)
	require.NoError(t, db.Table("`odd ``name`` [1].x`").Create(map[string]any{"group": "one"}).Error)
	for name, want := range map[string]string{
		"a": "`a`", "a.b": "`a`.`b`", "`a`.b": "`a`.`b`", "`a.b`.c": "`a.b`.`c`", "a`b": "`a``b`", "": "``",
	} {
		var b strings.Builder
		db.QuoteTo(&b, name)
		require.Equal(t, want, b.String(), name)
	}
}

func TestViolationsHaveGormsErrorsAndKeepTheirCause(t *testing.T) {
	t.Parallel()
	db := open(t)
	require.NoError(t, db.Create(&person{Name: "a"}).Error)
	for want, err := range map[error]error{
		gorm.ErrDuplicatedKey:           db.Create(&person{Name: "a"}).Error,
		gorm.ErrCheckConstraintViolated: db.Create(&person{Name: "b", Size: 1000}).Error,
		gorm.ErrForeignKeyViolated:      db.Exec("insert into pet values (99)").Error,
	} {
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, "constraint failed")
	}
}

func TestATransactionInATransactionIsASavepoint(t *testing.T) {
	t.Parallel()
	db := open(t)
	failure := errors.New("no")
	require.NoError(t, db.Transaction(func(outer *gorm.DB) error {
		require.NoError(t, outer.Create(&person{Name: "stays"}).Error)
		require.ErrorIs(t, outer.Transaction(func(inner *gorm.DB) error {
			require.NoError(t, inner.Create(&person{Name: "goes"}).Error)
			return failure
		}), failure)
		require.Error(t, outer.Session(&gorm.Session{}).RollbackTo("nowhere").Error, "a savepoint that is not there")
		return nil
	}))
	var names []string
	require.NoError(t, db.Model(&person{}).Pluck("name", &names).Error)
	require.Equal(t, []string{"stays"}, names)
}

func TestTheMigratorOfGormIsRefused(t *testing.T) {
	t.Parallel()
	db := open(t)
	require.ErrorIs(t, db.AutoMigrate(&person{}), ErrNoMigrator)
	require.PanicsWithValue(t, ErrNoMigrator, func() { db.Migrator().HasTable("people") }, "false would be believed")
}
