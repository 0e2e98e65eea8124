//test:plain

package errorclass_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func stock(t testing.TB) *exception.Matchers {
	t.Helper()
	m, err := exception.NewMatchers(errorclass.Stock()...)
	require.NoError(t, err)
	return m
}

func open(t testing.TB, url string) tx.Database {
	t.Helper()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	return db
}

func exec(t testing.TB, c tx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := c.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func begin(t testing.TB, db tx.Database, attr tx.Attr) tx.Handle {
	t.Helper()
	h, err := db.Begin(t.Context(), attr)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := h.Rollback(); !errors.Is(err, sql.ErrTxDone) {
			require.NoError(t, err)
		}
	})
	return h
}

func fails(t testing.TB, c tx.Conn, statement string, args ...any) error {
	t.Helper()
	_, err := c.ExecContext(t.Context(), statement, args...)
	require.Error(t, err, statement)
	return err
}

// requireClass checks the class, that its parents match too, and that the text is not used.
func requireClass(t testing.TB, want string, err error) {
	t.Helper()
	require.Error(t, err)
	m := stock(t)
	require.Equal(t, want, m.Class(err), "%T %v", err, err)
	require.Equal(t, want, m.Class(fmt.Errorf("writer: %w", errors.Join(io.EOF, err))), "wrapped and joined")
	require.Empty(t, m.Class(errors.New(err.Error())), "its text says nothing")
	parents := map[string]string{}
	for _, one := range m.All() {
		parents[one.Name] = one.Parent
	}
	for name := want; name != ""; name = parents[name] {
		rules, rerr := m.RetryRules([]string{name}, nil)
		require.NoError(t, rerr)
		require.True(t, rules.Match(err), "%s holds %v", name, err)
	}
}

func TestBrokenConstraintsOfBothDatabasesAreClassified(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := open(t, url).Conn()
		exec(t, c, `create table parent (id int primary key)`,
			`create table child (id int primary key, code text unique, parent int references parent(id), n int not null, amount int check (amount > 0))`,
			`insert into parent values (1)`, `insert into child values (1, 'a', 1, 1, 1)`)
		for statement, want := range map[string]string{
			`insert into child values (1, 'b', 1, 1, 1)`:    "unique",
			`insert into child values (2, 'a', 1, 1, 1)`:    "unique",
			`insert into child values (2, 'b', 9, 1, 1)`:    "foreign_key",
			`delete from parent`:                            "foreign_key",
			`insert into child values (2, 'b', 1, null, 1)`: "not_null",
			`insert into child values (2, 'b', 1, 1, 0)`:    "check",
			`insert into nowhere values (1)`:                "",
			`insert into`:                                   "",
		} {
			err := fails(t, c, statement)
			if want == "" {
				require.Empty(t, stock(t).Class(err), "%v", err)
				continue
			}
			requireClass(t, want, err)
		}
	})
}

func TestAValueThatItsColumnCannotHoldIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		c := open(t, testdb.Postgres(t)).Conn()
		exec(t, c, `create table narrow (name varchar(3), n smallint, day date, price numeric(4,2))`)
		for _, statement := range []string{
			`insert into narrow (name) values ('long')`,
			`insert into narrow (n) values (40000)`,
			`insert into narrow (n) values ('many'::text::int)`,
			`insert into narrow (day) values ('2026-02-30'::text::date)`,
			`insert into narrow (price) values (123.45)`,
			`insert into narrow (n) values (1 / (select 0))`,
		} {
			requireClass(t, "invalid_item", fails(t, c, statement))
		}
		requireClass(t, "constraint", exclusion(t, c))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		c := open(t, testdb.SQLite(t)).Conn()
		exec(t, c, `create table narrow (id integer primary key, n int) strict`)
		requireClass(t, "invalid_item", fails(t, c, `insert into narrow (n) values ('many')`))
		requireClass(t, "invalid_item", fails(t, c, `insert into narrow (id) values ('x')`))
		exec(t, c, `create trigger no before insert on narrow begin select raise(abort, 'deadlock timeout unique'); end`)
		requireClass(t, "constraint", fails(t, c, `insert into narrow (n) values (1)`))
	})
}

func exclusion(t testing.TB, c tx.Conn) error {
	exec(t, c, `create table room (during int4range, exclude using gist (during with &&))`, `insert into room values ('[1,5)')`)
	return fails(t, c, `insert into room values ('[4,6)')`)
}

func TestADeadlockOfTwoTransactionsIsADeadlock(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db.Conn(), `create table account (id int primary key, n int)`, `insert into account values (1, 0), (2, 0)`)
	first, second := begin(t, db, tx.Attr{}), begin(t, db, tx.Attr{})
	exec(t, first.Conn(), `set local deadlock_timeout = '20ms'`, `update account set n = 1 where id = 1`)
	exec(t, second.Conn(), `set local deadlock_timeout = '1min'`, `update account set n = 2 where id = 2`)
	var pid int
	require.NoError(t, second.Conn().QueryRowContext(t.Context(), `select pg_backend_pid()`).Scan(&pid))
	blocked := make(chan error, 1)
	go func() {
		_, err := second.Conn().ExecContext(context.WithoutCancel(t.Context()), `update account set n = 2 where id = 1`)
		blocked <- err
	}()
	eventually(t, db, `select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')`, pid)
	// first detects the deadlock, and so is the victim.
	requireClass(t, "deadlock", fails(t, first.Conn(), `update account set n = 1 where id = 2`))
	require.NoError(t, first.Rollback())
	require.NoError(t, <-blocked)
}

func eventually(t testing.TB, db tx.Database, query string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		var so bool
		require.NoError(t, db.Conn().QueryRowContext(ctx, query, args...).Scan(&so), query)
		if so {
			return
		}
	}
}

func TestASerializationFailureIsOne(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db.Conn(), `create table account (id int primary key, n int)`, `insert into account values (1, 0)`)
	h := begin(t, db, tx.Attr{Isolation: sql.LevelRepeatableRead})
	exec(t, h.Conn(), `select n from account`)
	exec(t, db.Conn(), `update account set n = 1`)
	requireClass(t, "serialization", fails(t, h.Conn(), `update account set n = 2`))
}

func TestAStaleSnapshotOfSQLiteIsASerializationFailure(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	one, other := open(t, url), open(t, url)
	exec(t, one.Conn(), `create table account (n int)`, `insert into account values (0)`)
	// Our own transactions begin as writers; a raw one takes its snapshot first.
	pool, err := one.Open()
	require.NoError(t, err)
	defer pool.Close() //nolint:errcheck // a test's
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // a test's
	for _, s := range []string{`begin deferred`, `select n from account`} {
		_, err = conn.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	exec(t, other.Conn(), `update account set n = 1`)
	_, err = conn.ExecContext(t.Context(), `update account set n = 2`)
	requireClass(t, "serialization", err)
}

func TestWaitsThatAreOverAreTimeouts(t *testing.T) {
	t.Parallel()
	t.Run("lock_timeout, nowait and statement_timeout", func(t *testing.T) {
		t.Parallel()
		db := open(t, testdb.Postgres(t))
		exec(t, db.Conn(), `create table account (id int primary key, n int)`, `insert into account values (1, 0)`)
		holder := begin(t, db, tx.Attr{})
		exec(t, holder.Conn(), `update account set n = 1`)
		for set, statement := range map[string]string{
			`set local lock_timeout = '10ms'`:      `update account set n = 2`,
			`set local statement_timeout = '10ms'`: `update account set n = 2`,
			`select 1`:                             `select n from account for update nowait`,
		} {
			h := begin(t, db, tx.Attr{})
			exec(t, h.Conn(), set)
			requireClass(t, "timeout", fails(t, h.Conn(), statement))
		}
	})
	t.Run("a busy SQLite", func(t *testing.T) {
		t.Parallel()
		url := testdb.SQLite(t)
		db := open(t, url)
		exec(t, db.Conn(), `create table account (n int)`)
		holder := begin(t, db, tx.Attr{})
		exec(t, holder.Conn(), `insert into account values (1)`)
		pool, err := db.Open()
		require.NoError(t, err)
		defer pool.Close() //nolint:errcheck // a test's
		conn, err := pool.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close() //nolint:errcheck // a test's
		_, err = conn.ExecContext(t.Context(), `pragma busy_timeout = 0`)
		require.NoError(t, err)
		_, err = conn.ExecContext(t.Context(), `insert into account values (2)`)
		requireClass(t, "timeout", err)
	})
	t.Run("a network that is silent", func(t *testing.T) {
		t.Parallel()
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close() //nolint:errcheck // a test's
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close() //nolint:errcheck // a test's
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, err = conn.Read(make([]byte, 1))
		requireClass(t, "timeout", err)

		client := http.Client{Timeout: 5 * time.Millisecond}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		require.ErrorIs(t, err, context.DeadlineExceeded, "it claims to be one")
		requireClass(t, "timeout", err)
	})
}

func TestALostOrRefusedConnectionIsOne(t *testing.T) {
	t.Parallel()
	t.Run("a killed backend", func(t *testing.T) {
		t.Parallel()
		db := open(t, testdb.Postgres(t))
		victim := begin(t, db, tx.Attr{})
		var pid int
		require.NoError(t, victim.Conn().QueryRowContext(t.Context(), `select pg_backend_pid()`).Scan(&pid))
		running := make(chan error, 1)
		go func() {
			_, err := victim.Conn().ExecContext(context.WithoutCancel(t.Context()), `select pg_sleep(60)`)
			running <- err
		}()
		eventually(t, db, `select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')`, pid)
		exec(t, db.Conn(), fmt.Sprintf(`select pg_terminate_backend(%d)`, pid))
		requireClass(t, "connection", <-running)
		_, err := victim.Conn().ExecContext(t.Context(), `select 1`)
		requireClass(t, "connection", err)
	})
	t.Run("a backend killed while it was idle in its transaction", func(t *testing.T) {
		t.Parallel()
		db := open(t, testdb.Postgres(t))
		victim := begin(t, db, tx.Attr{})
		var pid int
		require.NoError(t, victim.Conn().QueryRowContext(t.Context(), `select pg_backend_pid()`).Scan(&pid))
		exec(t, db.Conn(), fmt.Sprintf(`select pg_terminate_backend(%d, 30000)`, pid))
		requireClass(t, "connection", fails(t, victim.Conn(), `select 1`))
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address := listener.Addr().String()
		require.NoError(t, listener.Close())
		_, err = new(net.Dialer).DialContext(t.Context(), "tcp", address)
		requireClass(t, "connection", err)
		_, err = gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: "postgres://nobody@" + address + "/none?sslmode=disable"}})
		requireClass(t, "connection", err)
	})
	t.Run("a peer that hangs up", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		defer server.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		requireClass(t, "connection", err)
		requireClass(t, "connection", fmt.Errorf("body: %w", io.ErrUnexpectedEOF))
	})
}

func TestARefusedLoginIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(testdb.Postgres(t))
	require.NoError(t, err)
	at.User = url.User("nobody_of_this_name")
	_, err = gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: at.String()}})
	require.Error(t, err)
	require.Empty(t, stock(t).Class(err), "%v", err)
}

func TestErrorsOfFilesAreIO(t *testing.T) {
	t.Parallel()
	_, err := os.ReadFile(filepath.Join(t.TempDir(), "none"))
	requireClass(t, "io", err)
	_, err = os.ReadDir(filepath.Join(t.TempDir(), "none"))
	requireClass(t, "io", err)
	requireClass(t, "io", os.Rename(filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")))
	closed, err := os.Create(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = closed.WriteString("x")
	requireClass(t, "io", err)
	requireClass(t, "io", fmt.Errorf("copy: %w", io.ErrShortWrite))
}

type statusError struct{ code int }

func (e statusError) Error() string   { return fmt.Sprint("status ", e.code) }
func (e statusError) StatusCode() int { return e.code }

func TestAnHTTPStatusIsTransientWhenTheServerIsAtFault(t *testing.T) {
	t.Parallel()
	requireClass(t, "http", statusError{503})
	requireClass(t, "http", statusError{429})
	m := stock(t)
	require.Empty(t, m.Class(statusError{404}))
	match := func(errs, except []string, err error) bool {
		rules, rerr := m.RetryRules(errs, except)
		require.NoError(t, rerr)
		return rules.Match(err)
	}
	require.True(t, match([]string{"http(404)"}, nil, statusError{404}))
	require.False(t, match([]string{"http(404)", "transient"}, nil, statusError{403}))
	require.True(t, match([]string{"http(4xx)"}, nil, statusError{403}))
	require.False(t, match([]string{"http(4xx)"}, []string{"http(403)"}, statusError{403}))
	require.True(t, match([]string{"http(503)"}, []string{"http(5xx)"}, statusError{503}))
	require.False(t, match([]string{"transient"}, []string{"http(503)"}, statusError{503}))
	require.True(t, match([]string{"transient"}, []string{"http(503)"}, statusError{502}))
}

func TestASQLStateIsMoreSpecificThanItsClass(t *testing.T) {
	t.Parallel()
	c := open(t, testdb.Postgres(t)).Conn()
	exec(t, c, `create table t (id int primary key)`, `insert into t values (1)`)
	unique, division := fails(t, c, `insert into t values (1)`), fails(t, c, `select 1 / 0`)
	m := stock(t)
	match := func(errs, except []string, err error) bool {
		rules, rerr := m.SkipRules(errs, except)
		require.NoError(t, rerr)
		return rules.Match(err)
	}
	require.True(t, match([]string{"sqlstate(23505)"}, []string{"unique", "constraint"}, unique))
	require.False(t, match([]string{"unique", "constraint"}, []string{"sqlstate(23505)"}, unique))
	require.False(t, match([]string{"sqlstate(23xxx)"}, []string{"unique"}, unique), "a pattern is wider than a class below")
	require.True(t, match([]string{"sqlstate(22xxx)"}, nil, division))
	require.False(t, match([]string{"sqlstate(22xxx)"}, []string{"sqlstate(22012)"}, division))
	require.False(t, match([]string{"sqlstate(42P01)"}, nil, division))
	for name, want := range map[string]string{
		"sqlstate":        "error class sqlstate needs an argument: sqlstate(...)",
		"sqlstate(4000)":  `error class sqlstate(4000): "4000" is not an SQLSTATE; write five characters of 0-9 and A-Z such as 40001, or 40xxx`,
		"sqlstate(xxxxx)": `error class sqlstate(xxxxx): "xxxxx" is not an SQLSTATE; write five characters of 0-9 and A-Z such as 40001, or 40xxx`,
		"http(600)":       `error class http(600): "600" is not an HTTP status; write three digits such as 404, or 4xx`,
		"unique(a)":       "error class unique has no argument",
	} {
		require.EqualError(t, m.Check(name), want)
	}
}
