// Package testdb gives tests real databases: SQLite files, and databases in a private PostgreSQL
// cluster or MariaDB server.
//
// The cluster is the one that SURFIN_TEST_POSTGRES names, by the URL of a user who may create
// databases or the absolute path of a file with it, else one that the first test starts. Packages
// with such tests have
//
//	func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }
//
// which stops it. If SURFIN_TEST_TEMPLATES is set, the databases already have the repository's
// tables. A test about missing tables, or two histories in one database, uses EachEmpty,
// EmptySQLite or EmptyPostgres.
//
// The MariaDB server is that of the admin URL in SURFIN_TEST_MYSQL, else one that the first test
// of the package that asks for it starts.
//
// It imports the drivers and internal/testdb/pgcluster. Only tests import it.
package testdb

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Variable names the variable with a server's admin URL, or the path of a file with it.
const Variable = "SURFIN_TEST_POSTGRES"

// Templates names the environment variable with the folder that contains SQLiteTemplate; then the server has
// PostgresTemplate.
const (
	Templates        = "SURFIN_TEST_TEMPLATES"
	SQLiteTemplate   = "template.db"
	PostgresTemplate = "surfin_template"
)

var own struct {
	sync.Mutex
	cluster *pgcluster.Cluster
	err     error
	admin   *pgx.Conn
}

// Main runs the tests, stops their cluster, and returns the exit code.
func Main(m *testing.M) int {
	code := m.Run()
	own.Lock()
	defer own.Unlock()
	var errs []error
	if own.admin != nil {
		errs = append(errs, own.admin.Close(context.Background()))
		own.admin = nil
	}
	if own.cluster != nil {
		errs = append(errs, own.cluster.Stop())
		own.cluster = nil
	}
	errs = append(errs, maria.stop())
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "testdb:", err)
		return max(code, 1)
	}
	return code
}

// Kinds names the variable with the kinds of databases of Each, separated by commas: mysql is one, and not in the default.
const Kinds = "SURFIN_TEST_KINDS"

// Each runs f as a subtest per database, with the URL of a separate one.
func Each(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	each(t, cmp.Or(os.Getenv(Kinds), "sqlite,postgres"), SQLite, Postgres, f)
}

// All is Each, always with MariaDB.
func All(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	each(t, cmp.Or(os.Getenv(Kinds), "sqlite,postgres,mysql"), SQLite, Postgres, f)
}

// EachEmpty is Each with databases that have no tables.
func EachEmpty(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	each(t, cmp.Or(os.Getenv(Kinds), "sqlite,postgres"), EmptySQLite, EmptyPostgres, f)
}

func each(t *testing.T, kinds string, sqlite, postgres func(testing.TB) string, f func(t *testing.T, url string)) {
	t.Helper()
	for kind := range strings.SplitSeq(kinds, ",") {
		open, ok := map[string]func(testing.TB) string{"sqlite": sqlite, "postgres": postgres, "mysql": MySQL}[kind]
		if !ok {
			t.Fatalf("%s: %q is not sqlite, postgres or mysql", Kinds, kind)
		}
		t.Run(kind, func(t *testing.T) { f(t, open(t)) })
	}
}

// SQLite returns the URL of a file in the test's own folder.
func SQLite(t testing.TB) string {
	t.Helper()
	url := EmptySQLite(t)
	folder := os.Getenv(Templates)
	if folder == "" {
		return url
	}
	text, err := os.ReadFile(filepath.Join(folder, SQLiteTemplate)) //nolint:gosec // of internal/testdb/cluster
	if err == nil {
		err = os.WriteFile(strings.TrimPrefix(url, "sqlite:"), text, 0o600)
	}
	if err != nil {
		t.Fatalf("copy the template of SQLite: %v", err)
	}
	return url
}

// EmptySQLite returns the URL of a missing file in the test's folder.
func EmptySQLite(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	if strings.ContainsAny(folder, "?#%") { // a URL cannot name the folder of a subtest x#01
		var err error
		if folder, err = os.MkdirTemp("", "surfin-test-"); err != nil {
			t.Fatalf("a folder for SQLite: %v", err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(folder) }) //nolint:errcheck // a leftover in the temporary folder is not a failure
	}
	return "sqlite:" + filepath.Join(folder, "test.db")
}

// Postgres returns the URL of a database, dropped at the end. It fails without PostgreSQL: a skip
// would look like a success.
func Postgres(t testing.TB) string {
	t.Helper()
	if os.Getenv(Templates) == "" {
		return EmptyPostgres(t)
	}
	return postgres(t, PostgresTemplate)
}

// EmptyPostgres is Postgres with a database that has no tables.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	return postgres(t, "template0")
}

func postgres(t testing.TB, template string) string {
	t.Helper()
	admin, err := ownURL()
	if err != nil {
		t.Fatalf("this test needs PostgreSQL: %v", err)
	}
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
	random := make([]byte, 6)
	if _, err := rand.Read(random); err != nil {
		t.Fatalf("name of the test database: %v", err)
	}
	name := "surfin_test_" + hex.EncodeToString(random)
	if err := administrate(admin, func(c *pgx.Conn) string {
		return "CREATE DATABASE " + name + " TEMPLATE " + template + strategy(c)
	}); err != nil {
		t.Fatalf("create the test database: %v", err)
	}
	t.Cleanup(func() {
		if err := administrate(admin, func(*pgx.Conn) string { return "DROP DATABASE " + name + " WITH (FORCE)" }); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// Pooled returns a database's URL through the test's own PgBouncer; it fails without one.
func Pooled(t testing.TB, database, mode string, settings ...string) string {
	t.Helper()
	pooler, err := pgcluster.StartPooler(t.Context(), database, mode, settings...)
	if err != nil {
		t.Fatalf("this test needs PgBouncer: %v", err)
	}
	t.Cleanup(func() {
		if err := pooler.Stop(); err != nil {
			t.Errorf("stop the pooler: %v", err)
		}
	})
	return pooler.URL()
}

// AdminURL returns the URL that Variable names; "" if it is not set.
func AdminURL() (string, error) {
	given := os.Getenv(Variable)
	if !filepath.IsAbs(given) {
		return given, nil
	}
	text, err := os.ReadFile(given) //nolint:gosec // it is whose tests they are who says so
	if err != nil {
		return "", fmt.Errorf("%s: %w", Variable, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func ownURL() (string, error) {
	if given, err := AdminURL(); err != nil || given != "" {
		return given, err
	}
	own.Lock()
	defer own.Unlock()
	if own.cluster == nil && own.err == nil {
		own.cluster, own.err = pgcluster.Start(context.Background())
	}
	if own.err != nil {
		return "", own.err
	}
	return own.cluster.URL(), nil
}

func strategy(c *pgx.Conn) string {
	major, _, _ := strings.Cut(c.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 15 {
		return ""
	}
	return " STRATEGY FILE_COPY"
}

func administrate(admin string, statement func(*pgx.Conn) string) error {
	own.Lock()
	defer own.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if own.admin == nil || own.admin.IsClosed() {
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return fmt.Errorf("connect to the server of %s: %w", Variable, err)
		}
		own.admin = conn
	}
	_, err := own.admin.Exec(ctx, statement(own.admin))
	return err
}

// Waiting asks whether a session of the database waits for a lock.
func Waiting(d tx.Dialect) string {
	if d == tx.MySQL {
		// innodb_trx is not refreshed while many ask
		return "SELECT count(*) > 0 FROM information_schema.processlist WHERE db = database() AND id <> connection_id() AND command = 'Query' AND time_ms > 100"
	}
	return "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
}
