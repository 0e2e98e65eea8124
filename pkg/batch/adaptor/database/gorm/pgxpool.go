package gormdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PgxPool returns a separate pool of at most that many connections, for libraries that work with pgx,
// opened like the control pool's. The caller closes it. Only PostgreSQL has one.
func (d *database) PgxPool(ctx context.Context, maxConns int32) (*pgxpool.Pool, error) {
	p, ok := d.backend.(*postgres)
	if !ok {
		return nil, fmt.Errorf("database %s: it is %s, but only PostgreSQL has connections of pgx: %w", d.name, d.dialect, errors.ErrUnsupported)
	}
	config, err := pgxpool.ParseConfig("") // the only way to a valid configuration
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.name, err)
	}
	s := p.server
	config.ConnConfig, config.BeforeConnect, config.AfterConnect = s.config.Copy(), s.before, s.after
	// A cancelled wait for a notification is not a statement that the server could cancel: our usual way
	// would wait in vain for its answer.
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
	}
	config.MaxConns, config.MinConns = maxConns, 0
	config.MaxConnIdleTime = idleTime
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.name, err)
	}
	return pool, nil
}
