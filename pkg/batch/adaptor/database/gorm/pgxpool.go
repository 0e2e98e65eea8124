package gormdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PgxPool returns a pool of connections of its own, for libraries that work with pgx, with
// at most so many connections. They are opened as those of the control pool are: with the
// URL, or the configuration of the pool that is lent, and the settings of our sessions. The
// caller closes it. Only PostgreSQL has one.
func (d *database) PgxPool(ctx context.Context, maxConns int32) (*pgxpool.Pool, error) {
	p, ok := d.backend.(*postgres)
	if !ok {
		return nil, fmt.Errorf("database %s: it is %s, and only PostgreSQL has connections of pgx: %w", d.name, d.dialect, errors.ErrUnsupported)
	}
	config, err := pgxpool.ParseConfig("") // there is no other way to a valid configuration
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.name, err)
	}
	s := p.server.forControl(p.idleLimit)
	config.ConnConfig, config.BeforeConnect, config.AfterConnect = s.config, s.before, s.after
	config.MaxConns, config.MinConns = maxConns, 0
	config.MaxConnIdleTime = idleTime
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.name, err)
	}
	return pool, nil
}
