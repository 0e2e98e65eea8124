package gormdb

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func onMySQL(t *testing.T, c Config) tx.Database {
	t.Helper()
	if c.URL == "" {
		c.URL = testdb.MySQL(t)
	}
	db, err := openWith(t, c).Database("")
	require.NoError(t, err)
	return db
}

func in(t *testing.T, db tx.Database, attr tx.Attr, f func(ctx context.Context, run func(statement string, args ...any) error) error) error {
	t.Helper()
	return tx.NewManager(db).Do(t.Context(), attr, func(ctx context.Context) error {
		return f(ctx, func(statement string, args ...any) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, statement, args...)
			return err
		})
	})
}

func TestMySQLURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"mysql://me:se%zzcret@db/orders":         "the URL is malformed",
		"mysql://me:secret@db":                   "no database",
		"mysql://me:secret@/orders":              "no host",
		"mysql://me:secret@db/orders?tls=maybe":  "parameter tls is not supported",
		"mysql://me:secret@db/orders?loc=Berlin": "parameter loc is not supported",
	} {
		_, _, err := parseURL(raw)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "cret")
	}
	c, err := parseMySQL("mysql://me:se%40cret@db/orders?tls=true")
	require.NoError(t, err)
	require.Equal(t, []string{"db:3306", "me", "se@cret", "orders", "true"}, []string{c.Addr, c.User, c.Passwd, c.DBName, c.TLSConfig})
	_, err = Open(t.Context(), map[string]Config{"wares": {URL: strings.Replace(testdb.MySQL(t), "surfin:", "surfin:secret", 1)}})
	require.ErrorContains(t, err, "database wares: connect: ")
	require.NotContains(t, err.Error(), "secret")
}

// Rule MY2.
func TestASessionOfMySQLIsExact(t *testing.T) {
	t.Parallel()
	db := onMySQL(t, Config{})
	exec(t, db.Conn(), `create table bird (id int auto_increment primary key, "name" varchar(3), seen datetime(6), born date)`)
	exec(t, db.Conn(), "insert into bird values (0, 'tit', '2026-01-02 03:04:05.123456', null)")
	result, err := db.Conn().ExecContext(t.Context(), "update bird set name = ?2 where id = ?1 and ?1 = ?1 -- ?9", 0, "tit")
	require.NoError(t, err)
	found, err := result.RowsAffected()
	require.NoError(t, err)
	require.Equal(t, int64(1), found, "an UPDATE that changes nothing; and 0 is no new number")
	var name string
	var seen time.Time
	stmt, err := db.Conn().PrepareContext(t.Context(), `select name, seen from bird where name = ?2 and 'it\'s ?1' <> name and id = ?1`)
	require.NoError(t, err)
	defer stmt.Close()
	require.NoError(t, stmt.QueryRowContext(t.Context(), 0, "tit").Scan(&name, &seen))
	require.Equal(t, "tit 2026-01-02T03:04:05.123456Z", name+" "+seen.Format(time.RFC3339Nano))
	for statement, of := range map[string]func(error) bool{
		"insert into bird (id, name) values (1, 'stork')":      dberr.IsInvalidData,
		"insert into bird (id, born) values (1, 0)":            dberr.IsInvalidData,
		"insert into bird (id, born) values (1, '2026-02-30')": dberr.IsInvalidData,
		"insert into bird (id) values ('x')":                   dberr.IsInvalidData,
		"insert into bird (id) values (0)":                     dberr.IsUniqueViolation,
		"insert into nest (id) values (0)":                     dberr.IsStatement,
	} {
		_, err := db.Conn().ExecContext(t.Context(), statement)
		require.True(t, of(err), "%s: %v", statement, err)
	}
	var zone, isolation string
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "select @@time_zone, @@tx_isolation").Scan(&zone, &isolation))
	require.Equal(t, "+00:00 READ-COMMITTED", zone+" "+isolation)
}

// Rule MY3.
func TestATransactionOfMySQLIsEndedByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	db := onMySQL(t, Config{})
	exec(t, db.Conn(), "create table bird (id int primary key)")
	exec(t, db.Conn(), "create procedure ends() begin insert into bird values (7); commit; end")
	exec(t, db.Conn(), "create procedure adds() insert into bird values (8)")
	for _, statement := range []string{"create table nest (id int)", "truncate table bird", "ALTER TABLE bird ADD x int", "set autocommit = 1", "lock tables bird write"} {
		err := in(t, db, tx.Attr{}, func(_ context.Context, run func(string, ...any) error) error {
			require.NoError(t, run("insert into bird values (1)"))
			return run(statement)
		})
		require.ErrorIs(t, err, tx.ErrNotOwner, statement)
	}
	require.NoError(t, in(t, db, tx.Attr{}, func(_ context.Context, run func(string, ...any) error) error {
		require.NoError(t, run("create temporary table brood (id int)"))
		require.NoError(t, run("call adds()"))
		return run("insert into bird values (2)")
	}))
	for _, after := range []string{"", "insert into bird values (9)"} {
		exec(t, db.Conn(), "delete from bird where id = 7")
		err := in(t, db, tx.Attr{}, func(_ context.Context, run func(string, ...any) error) error {
			require.NoError(t, run("call ends()"))
			if after == "" {
				return nil
			}
			return run(after)
		})
		require.ErrorIs(t, err, tx.ErrForeignEnd)
	}
	require.Equal(t, []int64{2, 7, 8}, idsOf(t, db))
}

func idsOf(t *testing.T, db tx.Database) (ids []int64) {
	t.Helper()
	rows, err := db.Conn().QueryContext(t.Context(), "select id from bird order by id")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		require.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(t, rows.Err())
	return ids
}

// Rule MY4: 1205 takes back its statement only, and a statement after a deadlock would commit by itself.
func TestAfterALockWaitOrADeadlockNothingOfTheTransactionStays(t *testing.T) {
	t.Parallel()
	for _, deadlock := range []bool{false, true} {
		db := onMySQL(t, Config{})
		exec(t, db.Conn(), "create table bird (id int primary key, n int)")
		exec(t, db.Conn(), "insert into bird values (1, 0), (2, 0)")
		other, err := db.Begin(t.Context(), tx.Attr{})
		require.NoError(t, err)
		of := func(statement string) { exec(t, other.Conn(), statement) }
		of("update bird set n = 1 where id = 1")
		of("insert into bird values (5, 0), (6, 0), (7, 0)") // the one with fewer changes is the victim
		done := make(chan struct{})
		err = in(t, db, tx.Attr{}, func(ctx context.Context, run func(string, ...any) error) error {
			require.NoError(t, run("set innodb_lock_wait_timeout = 1"))
			require.NoError(t, run("insert into bird values (3, 0)"))
			require.NoError(t, run("update bird set n = 2 where id = 2"))
			if deadlock {
				go func() {
					defer close(done)
					_, _ = other.Conn().ExecContext(t.Context(), "update bird set n = 1 where id = 2")
				}()
				time.Sleep(100 * time.Millisecond)
			} else {
				close(done)
			}
			failure := run("update bird set n = 2 where id = 1")
			require.Error(t, failure)
			require.Equal(t, deadlock, dberr.IsDeadlock(failure), "%v", failure)
			require.Equal(t, !deadlock, dberr.IsTimeout(failure), "%v", failure)
			require.Error(t, run("insert into bird values (4, 0)"), "it would commit by itself")
			return nil // as who ignores errors
		})
		require.ErrorIs(t, err, tx.ErrRolledBack)
		require.Equal(t, deadlock, dberr.IsDeadlock(err), "%v", err)
		<-done
		require.NoError(t, other.Rollback())
		require.Equal(t, []int64{1, 2}, idsOf(t, db))
	}
}

// Rules L7, MY2.
func TestATransactionOfMySQLOutlivesWorkWithoutStatements(t *testing.T) {
	t.Parallel()
	db := onMySQL(t, Config{IdleInTransaction: time.Second})
	exec(t, db.Conn(), "create table bird (id int primary key)")
	require.NoError(t, in(t, db, tx.Attr{}, func(_ context.Context, run func(string, ...any) error) error {
		require.NoError(t, run("insert into bird values (1)"))
		time.Sleep(2500 * time.Millisecond)
		return nil
	}))
	h, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	exec(t, h.Conn(), "insert into bird values (2)")
	h.(*handle).beat.Stop() // as a frozen process
	time.Sleep(2500 * time.Millisecond)
	require.Equal(t, []int64{1}, idsOf(t, db))
	exec(t, db.Conn(), "insert into bird values (2)")
	require.Error(t, h.Commit())
}

func TestErrorsOfMySQLHaveClasses(t *testing.T) {
	t.Parallel()
	classes := map[string]func(error) bool{}
	for _, m := range errorclass.Stock() {
		classes[m.Name] = m.Match
	}
	for number, names := range map[uint16]string{
		1062: "unique constraint", 1452: "foreign_key constraint", 1451: "foreign_key constraint", 1048: "not_null constraint", 3819: "check constraint", 4025: "check constraint",
		1406: "invalid_item", 1264: "invalid_item", 1366: "invalid_item", 1205: "timeout", 1213: "deadlock", 1020: "serialization", 1040: "connection", 1927: "connection",
	} {
		for _, name := range strings.Fields(names) {
			require.True(t, classes[name](&mysql.MySQLError{Number: number}), "%d %s", number, name)
		}
	}
	require.True(t, classes["connection"](mysql.ErrInvalidConn))
	require.True(t, dberr.IsRolledBack(&mysql.MySQLError{Number: 1213}), "at COMMIT (rule C10a)")
	require.False(t, dberr.IsRolledBack(mysql.ErrInvalidConn), "a lost reply (rule C10)")
	require.False(t, dberr.IsRolledBack(errors.New("else")))
}

// Rule MY8.
func TestRowsThatExistAreIgnoredAndNothingElseOnMySQL(t *testing.T) {
	t.Parallel()
	db := onMySQL(t, Config{})
	exec(t, db.Conn(), "CREATE TABLE bird (id bigint AUTO_INCREMENT PRIMARY KEY, name varchar(5) UNIQUE, n int NOT NULL DEFAULT 0)")
	insert := func(values string) (int64, error) {
		r, err := db.Conn().ExecContext(t.Context(), "INSERT INTO bird (name) VALUES "+values+" ON CONFLICT (name) DO NOTHING")
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	for _, c := range []struct {
		values string
		rows   int64
	}{{"('a')", 1}, {"('a')", 0}, {"('a'), ('b'), ('c')", 2}} {
		n, err := insert(c.values)
		require.NoError(t, err)
		require.Equal(t, c.rows, n, c.values)
	}
	_, err := insert("('a'), ('too long')")
	require.ErrorContains(t, err, "Data truncated", "IGNORE would store a part of it")

	var id, n int64
	upsert := "INSERT INTO bird (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = bird.n + excluded.n RETURNING id, n"
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), upsert, "a", 3).Scan(&id, &n))
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), upsert, "a", 4).Scan(&id, &n))
	require.Equal(t, []int64{1, 7}, []int64{id, n})
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "UPDATE bird SET n = n + 1 WHERE id = ? AND name = ? RETURNING (SELECT count(*) FROM bird b)", 1, "a").Scan(&n))
	require.EqualValues(t, 3, n)
}

// Rule MY8.
func TestOnConflictIgnoresNoOtherKeyOnMySQL(t *testing.T) {
	t.Parallel()
	db := onMySQL(t, Config{})
	exec(t, db.Conn(), "create table bird (id bigint auto_increment primary key, name varchar(9) unique, ring int unique)")
	exec(t, db.Conn(), "insert into bird (name, ring) values ('tit', 1)")
	insert := func(values, conflict string) (int64, error) {
		result, err := db.Conn().ExecContext(t.Context(), "INSERT INTO bird (name, ring) VALUES "+values+" ON CONFLICT "+conflict+" DO NOTHING")
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	for _, c := range []struct {
		values, conflict string
		rows             int64
		says             string
	}{
		{"('tit', 2)", "(name)", 0, ""},
		{"('tit', 1)", "(name)", 0, ""},
		{"('owl', 1)", "(name)", 0, "Duplicate entry '1'"},
		{"('owl', 1)", "", 0, ""},
		{"('owl', 2)", "(name)", 1, ""},
		{"('tit', 3), ('jay', 3)", "(name)", 0, "table bird has other unique indexes ([name ring])"},
		{"('tit', 3), ('jay', 3)", "", 1, ""},
	} {
		rows, err := insert(c.values, c.conflict)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.rows, rows, "%s %s", c.values, c.conflict)
	}
}
