package pgcluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
)

// ErrNoMariaDB is a machine without MariaDB's server programs.
var ErrNoMariaDB = errors.New("MariaDB (mariadbd, and its SQL in /usr/share/mysql) is not installed: " +
	"install it (Debian: apt-get install mariadb-server-core), or name a server's admin URL in SURFIN_TEST_MYSQL; `make test` does this for you")

// MariaDB is a running MariaDB server.
type MariaDB struct {
	process
	url string
}

// URL returns the URL of the superuser, without a database.
func (m *MariaDB) URL() string { return m.url }

// StartMariaDB starts a server without durability.
func StartMariaDB(ctx context.Context) (*MariaDB, error) {
	server := program("mariadbd")
	tables, err := systemTables()
	if server == "" || err != nil {
		return nil, errors.Join(ErrNoMariaDB, err)
	}
	dir, who, err := folder("mariadb")
	if err != nil {
		return nil, err
	}
	m, err := startMariaDB(ctx, server, tables, dir, who)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

func sharedSettings(dir string) []string {
	return []string{
		"--no-defaults", "--datadir=" + filepath.Join(dir, "data"),
		"--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M", "--innodb-doublewrite=0", "--innodb-flush-method=nosync",
	}
}

// systemTables are the statements of mariadb-install-db, which needs the client's package, without HELP.
func systemTables() (text []byte, err error) {
	text = []byte("create database mysql;\nuse mysql;\nset @auth_root_socket = null;\n")
	for _, file := range []string{"system_tables.sql", "performance_tables.sql", "system_tables_data.sql"} {
		found, err := filepath.Glob("/usr/share/m[ya][sr][qi]*/m*_" + file)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("there is no /usr/share/mysql/mysql_%s", file)
		}
		part, err := os.ReadFile(found[0])
		if err != nil {
			return nil, err
		}
		text = append(text, part...)
	}
	return text, nil
}

func startMariaDB(ctx context.Context, server string, tables []byte, dir string, who account) (*MariaDB, error) {
	data := filepath.Join(dir, "data")
	if err := errors.Join(os.Mkdir(data, 0o700), who.own(data)); err != nil {
		return nil, err
	}
	setUp := exec.CommandContext(ctx, server, append(sharedSettings(dir), "--bootstrap", "--skip-log-bin")...)
	setUp.Dir, setUp.Stdin = dir, bytes.NewReader(tables)
	who.apply(setUp)
	if out, err := setUp.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadbd --bootstrap: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	password, users := rand.Text(), filepath.Join(dir, "users.sql")
	if err := who.write(users, "ALTER USER root@localhost IDENTIFIED BY '"+password+"';\n"+
		"CREATE OR REPLACE USER "+superuser+"@'%' IDENTIFIED BY '"+password+"';\n"+
		"GRANT ALL ON *.* TO "+superuser+"@'%' WITH GRANT OPTION;\n"); err != nil {
		return nil, err
	}
	m := &MariaDB{process: newProcess(dir)}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	m.url = (&url.URL{Scheme: "mysql", User: url.UserPassword(superuser, password), Host: address, Path: "/"}).String()
	args := append([]string{server}, sharedSettings(dir)...)
	if err := m.supervise(who, "TERM", append(args, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--socket="+filepath.Join(dir, "socket"),
		"--pid-file="+filepath.Join(dir, "pid"), "--init-file="+users, "--skip-name-resolve", "--performance-schema=0", "--max-connections=300",
		"--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", "--max-allowed-packet=16M")...); err != nil {
		return nil, err
	}
	if err := m.ready(ctx, superuser+":"+password+"@tcp("+address+")/"); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func (m *MariaDB) ready(ctx context.Context, source string) error {
	db, err := sql.Open("mysql", source)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it was only asked
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(m.dir, "log")) //nolint:errcheck // it only adds to the error
			return fmt.Errorf("the server in %s does not accept connections: %w\n%s", m.dir, err, bytes.TrimSpace(log))
		}
	}
}

// program also looks in /usr/sbin, which is not on everybody's PATH.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if path := filepath.Join("/usr/sbin", name); executable(path) {
		return path
	}
	return ""
}
