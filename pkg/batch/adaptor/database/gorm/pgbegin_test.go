package gormdb

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func late(t *testing.T, db tx.Database, work func(ctx context.Context, conn tx.Conn) error) error {
	t.Helper()
	return tx.NewManager(db).Do(t.Context(), tx.Attr{Late: true}, func(ctx context.Context) error { return work(ctx, tx.ConnOf(ctx, db)) })
}

func firsts() map[string]func(ctx context.Context, c *pgx.Conn, begin pgxconn.Begin) error {
	return map[string]func(ctx context.Context, c *pgx.Conn, begin pgxconn.Begin) error{
		"COPY": func(ctx context.Context, c *pgx.Conn, begin pgxconn.Begin) error {
			_, err := begin.CopyFrom(ctx, c, strings.NewReader("4\tgull\n"), "copy bird from stdin")
			return err
		},
		"prepared": func(ctx context.Context, c *pgx.Conn, begin pgxconn.Begin) error {
			_, err := begin.ExecPrepared(ctx, c, "gull", [][]byte{[]byte("gull")}, []int16{pgx.TextFormatCode})
			return err
		},
	}
}

func oneConnection(t *testing.T, url string) tx.Database {
	t.Helper()
	db := birds(t, openWith(t, Config{URL: url, MaxOpen: minPostgresOpen}))
	require.NoError(t, pgxconn.Run(t.Context(), db.Conn(), "prepare", func(c *pgx.Conn) error {
		_, err := c.Prepare(t.Context(), "gull", "insert into bird values (4, $1)")
		return err
	}))
	return db
}

func TestWhatGoesWithItsBeginIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	for name, first := range firsts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := testproxy.New(t, testdb.Postgres(t))
			db := oneConnection(t, line.URL())
			insert := func(ctx context.Context, conn tx.Conn) error {
				return pgxconn.RunFirst(ctx, conn, "insert", func(c *pgx.Conn, begin pgxconn.Begin) error { return first(ctx, c, begin) })
			}
			undone := errors.New("undone")
			before := line.Busiest().RoundTrips
			require.ErrorIs(t, late(t, db, func(ctx context.Context, conn tx.Conn) error {
				return errors.Join(insert(ctx, conn), undone)
			}), undone)
			require.Equal(t, 2, line.Busiest().RoundTrips-before) // the statement, and ROLLBACK
			require.Equal(t, 3, count(t, db.Conn()))

			require.NoError(t, late(t, db, insert))
			require.Equal(t, 4, count(t, db.Conn()))

			err := late(t, db, func(ctx context.Context, conn tx.Conn) error {
				exec(t, conn, "INSERT INTO bird VALUES (5, 'rook')")
				return insert(ctx, conn) // a BEGIN has been sent
			})
			require.Equal(t, "23505", dberr.SQLState(err), "%v", err)
			err = late(t, db, insert)
			require.Equal(t, "23505", dberr.SQLState(err), "%v", err)
			require.NotErrorIs(t, err, tx.ErrNotBegun)
			require.Equal(t, 4, count(t, db.Conn()))
		})
	}
}

func TestATransactionThatBeginsLateSendsNothingForNoStatement(t *testing.T) {
	t.Parallel()
	line := testproxy.New(t, testdb.Postgres(t))
	db := oneConnection(t, line.URL())
	before := line.Busiest().RoundTrips
	undone := errors.New("undone")
	require.NoError(t, late(t, db, func(context.Context, tx.Conn) error { return nil }))
	require.ErrorIs(t, late(t, db, func(context.Context, tx.Conn) error { return undone }), undone)
	require.Equal(t, before, line.Busiest().RoundTrips)
}

func TestWhoTakesBeginAndDoesNotSendItIsFound(t *testing.T) {
	t.Parallel()
	db := oneConnection(t, testdb.Postgres(t))
	err := late(t, db, func(ctx context.Context, conn tx.Conn) error {
		return pgxconn.RunFirst(ctx, conn, "insert", func(*pgx.Conn, pgxconn.Begin) error { return nil })
	})
	require.ErrorIs(t, err, tx.ErrForeignEnd)
	require.NoError(t, late(t, db, func(ctx context.Context, conn tx.Conn) error { // on another connection
		_, err := conn.ExecContext(ctx, "INSERT INTO bird VALUES (4, 'gull')")
		return err
	}))
	require.Equal(t, 4, count(t, db.Conn()))
}

func TestABeginThatFailsLateFailsEveryStatement(t *testing.T) {
	t.Parallel()
	for name, first := range firsts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := oneConnection(t, testdb.Postgres(t))
			var pid int
			err := late(t, db, func(ctx context.Context, conn tx.Conn) error {
				require.NoError(t, conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid))
				return nil
			})
			require.NoError(t, err)
			err = late(t, db, func(ctx context.Context, conn tx.Conn) error {
				_, err := db.Conn().ExecContext(ctx, "SELECT pg_terminate_backend($1, 10000)", pid)
				require.NoError(t, err)
				err = pgxconn.RunFirst(ctx, conn, "insert", func(c *pgx.Conn, begin pgxconn.Begin) error { return first(ctx, c, begin) })
				require.True(t, errorclass.IsUnreachable(err), "%v", err)
				require.ErrorIs(t, err, tx.ErrNotBegun)
				_, again := conn.ExecContext(ctx, "INSERT INTO bird VALUES (4, 'gull')")
				require.Error(t, again)
				return nil // the work does not notice
			})
			require.Error(t, err)
			require.Equal(t, 3, count(t, db.Conn()))
		})
	}
}

func TestWhatRunsOutOfTimeWithItsBeginIsAtFault(t *testing.T) {
	t.Parallel()
	for name, first := range firsts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := oneConnection(t, testdb.Postgres(t))
			exec(t, db.Conn(), "CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN new; END $$")
			exec(t, db.Conn(), "CREATE TRIGGER sleeps BEFORE INSERT ON bird FOR EACH ROW EXECUTE FUNCTION sleeps()")
			err := late(t, db, func(ctx context.Context, conn tx.Conn) error {
				ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				return pgxconn.RunFirst(ctx, conn, "insert", func(c *pgx.Conn, begin pgxconn.Begin) error { return first(ctx, c, begin) })
			})
			require.Error(t, err)
			require.NotErrorIs(t, err, tx.ErrNotBegun)
			require.Equal(t, 3, count(t, db.Conn()))
		})
	}
}
