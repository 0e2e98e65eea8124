package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
)

// MySQLVariable names the variable with the URL of a MySQL or MariaDB user who may create databases.
const MySQLVariable = "SURFIN_TEST_MYSQL"

var maria mariaDB

type mariaDB struct {
	mu     sync.Mutex
	url    string
	server *pgcluster.MariaDB
	admin  *sql.DB
	err    error
}

// MySQL returns the URL of a database, dropped at the end. It fails without a server: a skip would look like a
// success.
func MySQL(t testing.TB) string {
	t.Helper()
	random := make([]byte, 6)
	_, err := rand.Read(random)
	name := "surfin_test_" + hex.EncodeToString(random)
	if err == nil {
		err = maria.administrate("CREATE DATABASE " + name + " CHARACTER SET utf8mb4")
	}
	if err != nil {
		t.Fatalf("this test needs MariaDB: %v", err)
	}
	t.Cleanup(func() {
		if err := maria.administrate("DROP DATABASE " + name); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	u, err := url.Parse(maria.url)
	if err != nil {
		t.Fatalf("%s: %v", MySQLVariable, err)
	}
	u.Path = "/" + name
	return u.String()
}

func (m *mariaDB) administrate(statement string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if m.admin == nil && m.err == nil {
		m.err = m.start(ctx)
	}
	if m.err != nil {
		return m.err
	}
	_, err := m.admin.ExecContext(ctx, statement)
	return err
}

func (m *mariaDB) start(ctx context.Context) (err error) {
	if m.url = os.Getenv(MySQLVariable); m.url == "" {
		if m.server, err = pgcluster.StartMariaDB(ctx); err != nil {
			return err
		}
		m.url = m.server.URL()
	}
	u, err := url.Parse(m.url)
	if err != nil {
		return fmt.Errorf("%s: %w", MySQLVariable, err)
	}
	password, _ := u.User.Password()
	m.admin, err = sql.Open("mysql", u.User.Username()+":"+password+"@tcp("+u.Host+")/")
	if err == nil {
		var version string
		err = m.admin.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
		fmt.Fprintln(os.Stderr, "testdb: MySQL", version)
	}
	return err
}

func (m *mariaDB) stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	if m.admin != nil {
		errs = append(errs, m.admin.Close())
	}
	if m.server != nil {
		errs = append(errs, m.server.Stop())
	}
	m.admin, m.server = nil, nil
	return errors.Join(errs...)
}
