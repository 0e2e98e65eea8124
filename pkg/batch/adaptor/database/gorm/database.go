package gormdb

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type backend interface {
	conn() tx.Conn
	begin(ctx context.Context, attr tx.Attr) (*handle, error)
	open() (*sql.DB, error)
	ping(ctx context.Context) error
	hasIsolation(level sql.IsolationLevel) bool
	singleWriter() bool
	writerHeld() time.Duration
	reconnect() error
	close() error
}

type database struct {
	name    string
	dialect tx.Dialect
	size    int // for data; on SQLite those that read
	backend backend
	gorm    sessions

	reconnects atomic.Int64
}

var _ tx.Database = (*database)(nil)

func (d *database) Name() string { return d.name }

func (d *database) Dialect() tx.Dialect { return d.dialect }

func (d *database) Conn() tx.Conn { return d.backend.conn() }

func (d *database) SingleWriter() bool { return d.backend.singleWriter() }

func (d *database) WriterHeld() time.Duration { return d.backend.writerHeld() }

func (d *database) Reconnects() int64 { return d.reconnects.Load() }

func (d *database) Open() (*sql.DB, error) { return d.backend.open() }

// PoolSize is the maximum number of open connections for data; on SQLite of readers.
func (d *database) PoolSize() int { return d.size }

// Check refuses isolation levels that the database lacks (rules T4, T9).
func (d *database) Check(attr tx.Attr) error {
	if attr.Isolation == sql.LevelDefault || d.backend.hasIsolation(attr.Isolation) {
		return nil
	}
	return fmt.Errorf("database %s (%s) does not have the isolation level %s", d.name, d.dialect, attr.Isolation)
}

func (d *database) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	if err := d.Check(attr); err != nil {
		return nil, err
	}
	h, err := d.backend.begin(ctx, attr)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.name, err)
	}
	h.expireAfter(attr.Timeout)
	return h, nil
}
