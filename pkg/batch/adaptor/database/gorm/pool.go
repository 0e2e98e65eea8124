package gormdb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// pool is a *sql.DB that can be replaced while in use (rule T7).
type pool struct {
	open    func() (*sql.DB, error)
	gate    *gate
	current atomic.Pointer[generation]

	mu     sync.Mutex // guards failed; one swap at a time
	failed error
}

func newPool(open func() (*sql.DB, error)) (*pool, error) {
	db, err := open()
	if err != nil {
		return nil, err
	}
	p := &pool{open: open}
	p.current.Store(newGeneration(p, db))
	return p, nil
}

// generation counts its users, including the pool, so that Close never meets a caller between "which pool"
// and "a connection of it". Users are calls: the rows, statements and transactions that a call returns live
// on without it, as database/sql keeps their connections until they end.
type generation struct {
	*sql.DB
	pool  *pool
	users atomic.Int64
}

func newGeneration(p *pool, db *sql.DB) *generation {
	g := &generation{DB: db, pool: p}
	g.users.Store(1)
	return g
}

// The caller must leave the generation after the call.
func (p *pool) use() *generation {
	for {
		g := p.current.Load()
		for n := g.users.Load(); n > 0; n = g.users.Load() {
			if g.users.CompareAndSwap(n, n+1) {
				return g
			}
		}
		if p.current.Load() == g {
			g.users.Add(1)
			return g
		}
	}
}

func (g *generation) leave() {
	if g.users.Add(-1) > 0 {
		return
	}
	if err := g.Close(); err != nil {
		g.pool.mu.Lock()
		defer g.pool.mu.Unlock()
		g.pool.failed = errors.Join(g.pool.failed, err)
	}
}

func (p *pool) swap() error {
	p.mu.Lock()
	db, err := p.open()
	if err != nil {
		p.mu.Unlock()
		return err
	}
	old := p.current.Swap(newGeneration(p, db))
	p.mu.Unlock()
	old.leave()
	return nil
}

func (p *pool) close() error {
	p.current.Load().leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

type poolConn struct {
	pool    *pool
	explain func(ctx context.Context, err error) error
}

var _ tx.Conn = poolConn{}

func (c poolConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	g, leave, err := c.pool.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	result, err := g.DB.ExecContext(ctx, query, args...)
	return result, c.explain(ctx, err)
}

func (c poolConn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	g, leave, err := c.pool.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	stmt, err := g.DB.PrepareContext(ctx, query)
	return stmt, c.explain(ctx, err)
}

func (c poolConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	g, leave, err := c.pool.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	rows, err := g.DB.QueryContext(ctx, query, args...)
	return rows, c.explain(ctx, err)
}

func (c poolConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	g, leave, err := c.pool.enter(ctx)
	if err != nil {
		g, leave = c.pool.use(), func() {}
		defer g.leave()
		ctx = failed{ctx, err}
	}
	defer leave()
	return g.DB.QueryRowContext(ctx, query, args...)
}

func (c poolConn) Raw(ctx context.Context, f func(driverConn any) error) (err error) {
	conn, err := c.pool.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return raw(ctx, conn, f)
}

func (p *pool) acquire(ctx context.Context) (*sql.Conn, error) {
	g, leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return g.DB.Conn(ctx)
}

// enter is use, after the gate has admitted the caller, which calls leave after the call.
func (p *pool) enter(ctx context.Context) (g *generation, leave func(), err error) {
	admitted, err := p.gate.enter(ctx, p.inUse)
	if err != nil {
		return nil, nil, err
	}
	g = p.use()
	return g, func() {
		admitted()
		g.leave()
	}, nil
}

func (p *pool) inUse() int { return p.current.Load().Stats().InUse }
