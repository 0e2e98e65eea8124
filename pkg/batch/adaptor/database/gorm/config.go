package gormdb

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Config is one database.
type Config struct {
	// URL is postgres://user:password@host:port/name?..., mysql://user:password@host:port/name?tls=true (MariaDB too,
	// see docs/howto/mysql.md), or sqlite:PATH. SQLite in memory is refused: each
	// connection would have its own content. A session of PostgreSQL has timezone UTC, DateStyle ISO,
	// IntervalStyle postgres, extra_float_digits 1 and bytea_output hex, whatever other settings say: times
	// are UTC (rule D5), and a value has one text (rule R10).
	URL string `yaml:"url"`
	// Lent is a pool of the application, instead of a URL (see [Lend]). MaxOpen then bounds the borrowed
	// connections; 0 means the pool's limit, or 10.
	Lent Lent `yaml:"-"`
	// MaxOpen bounds the connections for data; 0 means 10 on a server, and 4 readers (and a writer) on
	// SQLite. A running step or partition needs two, and one more is needed for all (rule R6): a server
	// needs 3.
	MaxOpen int `yaml:"max_open"`
	// ControlOpen bounds the control pool of a server ([DBProvider.Control]); 0 means 3.
	ControlOpen int `yaml:"control_open"`
	// IdleInTransaction is how long a server lets a transaction wait for its client; 0 means 30 s; at
	// most the lease (rule L7).
	IdleInTransaction time.Duration `yaml:"idle_in_transaction"`
	// FileMode is for a new SQLite file and its accompanying files; 0 means 0600.
	FileMode fs.FileMode `yaml:"file_mode"`
}

const (
	defaultPostgresOpen      = 10
	minPostgresOpen          = 3 // two for one running step, and one
	defaultSQLiteReaders     = 4
	defaultControlOpen       = 3
	defaultIdleInTransaction = 30 * time.Second
	defaultFileMode          = 0o600
)

func (c Config) withDefaults(dialect tx.Dialect) Config {
	if c.MaxOpen == 0 {
		c.MaxOpen = defaultPostgresOpen
		if dialect == tx.SQLite {
			c.MaxOpen = defaultSQLiteReaders
		}
	}
	if c.ControlOpen == 0 {
		c.ControlOpen = defaultControlOpen
	}
	if c.IdleInTransaction == 0 {
		c.IdleInTransaction = defaultIdleInTransaction
	}
	if c.FileMode == 0 {
		c.FileMode = defaultFileMode
	}
	return c
}

func (c Config) validate() (dialect tx.Dialect, path string, err error) {
	var wrong []error
	switch {
	case !c.Lent.given:
		dialect, path, err = parseURL(c.URL)
	case c.URL != "":
		err = errors.New("it has a URL and a pool of the application: remove one of them")
	default:
		dialect, err = c.Lent.dialect()
	}
	if err != nil {
		wrong = append(wrong, err)
	}
	for name, n := range map[string]int{"max_open": c.MaxOpen, "control_open": c.ControlOpen} {
		if n < 0 {
			wrong = append(wrong, fmt.Errorf("%s is %d, but must be positive", name, n))
		}
	}
	if dialect != tx.SQLite && c.MaxOpen > 0 && c.MaxOpen < minPostgresOpen {
		wrong = append(wrong, fmt.Errorf("max_open is %d, but must be at least %d: a running step needs two connections, and one more is reserved", c.MaxOpen, minPostgresOpen))
	}
	if c.IdleInTransaction < 0 {
		wrong = append(wrong, fmt.Errorf("idle_in_transaction is %s, but must be positive", c.IdleInTransaction))
	}
	return dialect, path, errors.Join(wrong...)
}

func parseURL(raw string) (tx.Dialect, string, error) {
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok {
		return "", "", errors.New("the URL has no scheme: write postgres://user@host/name, mysql://user@host/name or sqlite:PATH")
	}
	switch scheme {
	case "postgres", "postgresql":
		if _, err := url.Parse(raw); err != nil {
			return "", "", errors.New("the URL is malformed") // its text has the password
		}
		return tx.Postgres, "", nil
	case "mysql":
		_, err := parseMySQL(raw)
		return tx.MySQL, "", err
	case "sqlite":
		path := strings.TrimPrefix(rest, "//")
		switch {
		case path == "":
			return "", "", errors.New("the URL sqlite: names no file")
		case strings.Contains(path, ":memory:") || strings.Contains(path, "mode=memory"):
			return "", "", errors.New("SQLite in memory is not supported: each connection would have its own database; name a file")
		case strings.ContainsAny(path, "?#%"):
			return "", "", fmt.Errorf("the SQLite file %s: parameters, and the characters ? # %%, are not supported", path)
		}
		return tx.SQLite, filepath.Clean(path), nil
	}
	return "", "", fmt.Errorf("the URL's scheme %q is unknown (known: postgres, postgresql, mysql, sqlite)", scheme)
}

func (l Lent) share(maxOpen int) (int, error) {
	limit := l.limit()
	switch {
	case limit > 0 && limit < minPostgresOpen:
		return 0, fmt.Errorf("the pool of the application has at most %d connections, but must have at least %d: a running step needs two connections, and one more is reserved", limit, minPostgresOpen)
	case limit > 0 && maxOpen > limit:
		return 0, fmt.Errorf("max_open is %d, but the pool of the application has at most %d connections", maxOpen, limit)
	case maxOpen > 0:
		return maxOpen, nil
	case limit > 0:
		return limit, nil
	}
	return defaultPostgresOpen, nil
}
