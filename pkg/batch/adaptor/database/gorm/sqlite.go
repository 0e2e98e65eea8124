package gormdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	// busyTimeout is SQLite's own blind wait for a lock: a longer one ignores the context and starves
	// against writers that poll (rule R6).
	busyTimeout = 20 * time.Millisecond
	pollMin     = time.Millisecond
	pollMax     = 5 * time.Millisecond
	// for migrations, which do not poll
	ownBusyTimeout = 30 * time.Second
)

type sqliteFile struct {
	name    string
	path    string
	mode    fs.FileMode
	writer  *pool
	readers *pool
	held    *writerTime
}

func newSQLite(name, path string, readers int, mode fs.FileMode) (*sqliteFile, error) {
	s := &sqliteFile{name: name, path: path, mode: mode, held: newWriterTime()}
	var err error
	if s.writer, err = newPool(func() (*sql.DB, error) { return s.openPool(1, busyTimeout, "immediate", false) }); err != nil {
		return nil, err
	}
	if s.readers, err = newPool(func() (*sql.DB, error) { return s.openPool(readers, busyTimeout, "deferred", true) }); err != nil {
		return nil, err
	}
	s.readers.gate = newGate(name, readers, false)
	return s, nil
}

func (s *sqliteFile) openPool(size int, busy time.Duration, lock string, queryOnly bool) (*sql.DB, error) {
	q := url.Values{}
	q.Set("_busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10))
	q.Set("_foreign_keys", "1")
	q.Set("_synchronous", "FULL")
	q.Set("_txlock", lock)
	q.Set("_time_format", "sqlite")
	q.Set("_timezone", "UTC")
	q.Set("_error_rc", "1")
	if queryOnly {
		q.Set("_query_only", "1")
	} else {
		q.Set("_journal_mode", "WAL")
	}
	driver, err := sqlite.NewConnector(s.path + "?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.path, err)
	}
	held := s.held
	if queryOnly {
		held = nil
	}
	db := sql.OpenDB(connector{driver, wrapSQLite(held, busy)})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// The writer makes the file and puts it into WAL mode, so it is opened first.
func (s *sqliteFile) ping(ctx context.Context) error {
	if err := s.make(); err != nil {
		return err
	}
	if _, err := s.conn().ExecContext(ctx, "SELECT 1"); err != nil {
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	var mode string
	if err := s.conn().QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	if mode != "wal" {
		return fmt.Errorf("open %s: the journal mode is %s, because the file system does not support WAL", s.path, mode)
	}
	return nil
}

// SQLite itself would make the file readable for all users.
func (s *sqliteFile) make() error {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, s.mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *sqliteFile) open() (*sql.DB, error) {
	return s.openPool(1, ownBusyTimeout, "immediate", false)
}

func (s *sqliteFile) conn() tx.Conn { return sqliteConn{s} }

func (s *sqliteFile) singleWriter() bool { return true }

func (s *sqliteFile) writerHeld() time.Duration { return s.held.held() }

func (s *sqliteFile) reconnect() error { return errors.Join(s.writer.swap(), s.readers.swap()) }

func (s *sqliteFile) close() error { return errors.Join(s.readers.close(), s.writer.close()) }

// One writer, and readers on a snapshot, are serializable.
func (s *sqliteFile) hasIsolation(level sql.IsolationLevel) bool {
	return level == sql.LevelSerializable
}

func (s *sqliteFile) begin(ctx context.Context, attr tx.Attr) (*handle, error) {
	if attr.ReadOnly {
		return s.beginRead(ctx)
	}
	if tx.WriterHeld(ctx, s.name) {
		return nil, tx.ErrSingleWriter
	}
	conn, err := whileBusy(ctx, func() (*sql.Conn, error) { return s.writer.acquire(ctx) })
	if err != nil {
		return nil, err
	}
	t, err := whileBusy(ctx, func() (*sql.Tx, error) { return conn.BeginTx(context.WithoutCancel(ctx), nil) })
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return newSQLiteHandle(conn, t)
}

// query_only is SQLite's form of read-only transactions (rule T9). It is set again in case a statement had
// unset it.
func (s *sqliteFile) beginRead(ctx context.Context) (*handle, error) {
	conn, err := whileBusy(ctx, func() (*sql.Conn, error) { return s.readers.acquire(ctx) })
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, protect); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	t, err := whileBusy(ctx, func() (*sql.Tx, error) {
		return conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: true})
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &handle{
		c:        &txConn{conn: conn, tx: t, explain: explainSQLite},
		fence:    func() (string, error) { return "", nil },
		commit:   commitSQLite,
		rollback: rollbackSQLite,
		release: func(conn *sql.Conn) error {
			_, err := conn.ExecContext(context.WithoutCancel(ctx), protect)
			return err
		},
	}, nil
}

// f must have no effect if it fails with BUSY.
func whileBusy[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if dberr.SQLiteCode(err)&0xff != sqlite3.SQLITE_BUSY {
			return v, err
		}
		timer := time.NewTimer(pollMin + rand.N(pollMax-pollMin))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return v, fmt.Errorf("timed out while another process wrote to the database file: %w: %w", ctx.Err(), err)
		}
	}
}
