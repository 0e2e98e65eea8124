package gormdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DBProvider owns the pools of the configured databases and is the application's tx.Provider. Safe for
// concurrent use.
type DBProvider struct {
	databases map[string]*database
	controls  map[string]*database // not SQLite, which has one writer
}

var _ tx.Provider = (*DBProvider)(nil)

// Open makes all pools and connects to each database once, to report all wrong addresses and passwords now.
// The caller closes the provider.
func Open(ctx context.Context, configs map[string]Config) (*DBProvider, error) {
	p := &DBProvider{databases: map[string]*database{}, controls: map[string]*database{}}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if err := p.add(ctx, name, configs[name]); err != nil {
			wrong = append(wrong, fmt.Errorf("database %s: %w", name, err))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *DBProvider) add(ctx context.Context, name string, c Config) error {
	dialect, path, err := c.validate()
	if err != nil {
		return err
	}
	if c.Lent.given && dialect == tx.SQLite {
		if path, err = c.Lent.file(ctx); err != nil {
			return err
		}
	}
	if dialect == tx.Postgres {
		return p.addPostgres(ctx, name, c)
	}
	c = c.withDefaults(dialect)
	db := &database{name: name, dialect: dialect, size: c.MaxOpen}
	if dialect == tx.MySQL {
		db.backend, err = newMySQL(name, c)
	} else {
		db.backend, err = newSQLite(name, path, c.MaxOpen, c.FileMode)
	}
	if err != nil {
		return err
	}
	p.databases[name] = db
	if dialect == tx.MySQL {
		c.MaxOpen = c.ControlOpen
		control, err := newMySQL(name, c)
		if err != nil {
			return err
		}
		p.controls[name] = &database{name: name, dialect: dialect, size: c.MaxOpen, backend: control}
	}
	return db.backend.ping(ctx)
}

func (p *DBProvider) addPostgres(ctx context.Context, name string, c Config) (err error) {
	if c.Lent.given {
		if c.MaxOpen, err = c.Lent.share(c.MaxOpen); err != nil {
			return err
		}
	}
	c = c.withDefaults(tx.Postgres)
	server, err := c.server(ctx)
	if err != nil {
		return err
	}
	data := &postgres{name: name, server: server, maxOpen: c.MaxOpen, idleLimit: c.IdleInTransaction}
	if c.Lent.given {
		data.borrower = newBorrower(name, c.Lent, c.IdleInTransaction)
	}
	if data.pool, err = newPool(data.openPool); err != nil {
		return err
	}
	data.pool.gate = newGate(name, data.maxOpen, true)
	p.databases[name] = &database{name: name, dialect: tx.Postgres, size: data.maxOpen, backend: data}
	reach := data.meet
	if c.Lent.given {
		reach = data.ping
	}
	if err := reach(ctx); err != nil {
		return err
	}
	control := &postgres{name: name, server: data.server.forControl(c.IdleInTransaction), maxOpen: c.ControlOpen, idleLimit: c.IdleInTransaction}
	if control.pool, err = newPool(control.openPool); err != nil {
		return err
	}
	p.controls[name] = &database{name: name, dialect: tx.Postgres, size: control.maxOpen, backend: control}
	return c.pingControl(ctx, control)
}

func (c Config) pingControl(ctx context.Context, control *postgres) error {
	if !c.Lent.given {
		return nil
	}
	if err := control.ping(ctx); err != nil {
		return fmt.Errorf("connections in addition to the application's pool, with its configuration (rule R6): %w", err)
	}
	return nil
}

// Database returns the named database; "" is "default".
func (p *DBProvider) Database(name string) (tx.Database, error) {
	db, err := p.find(name)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Control returns the named database over a small separate pool (rule R6), so that heartbeats, stop
// requests and launches continue while the steps use up the data pool. Work in a transaction of the
// database joins it as usual. On SQLite it is the database itself.
func (p *DBProvider) Control(name string) (tx.Database, error) {
	db, err := p.find(name)
	if err != nil {
		return nil, err
	}
	if control, ok := p.controls[db.name]; ok {
		return control, nil
	}
	return db, nil
}

// Names returns the names of all databases, sorted.
func (p *DBProvider) Names() []string { return slices.Sorted(maps.Keys(p.databases)) }

// ForceReconnect gives new work new connections, which know the current schema (rule T7). Statements, rows
// and transactions in flight end undisturbed on their old ones. A statement prepared outside a transaction
// must be prepared again. Connections of a lent pool are closed when they are borrowed again.
func (p *DBProvider) ForceReconnect(ctx context.Context, name string) error {
	db, err := p.find(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err = db.backend.reconnect()
	db.reconnects.Add(1)
	if control, ok := p.controls[db.name]; ok {
		err = errors.Join(err, control.backend.reconnect())
		control.reconnects.Add(1)
	}
	if err != nil {
		return fmt.Errorf("reconnect database %s: %w", db.name, err)
	}
	return nil
}

// Close closes all pools except lent ones, which get their connections back.
func (p *DBProvider) Close() error {
	var failed []error
	for _, set := range []map[string]*database{p.controls, p.databases} {
		for _, db := range set {
			if err := db.backend.close(); err != nil {
				failed = append(failed, fmt.Errorf("close database %s: %w", db.name, err))
			}
		}
	}
	return errors.Join(failed...)
}

func (p *DBProvider) find(name string) (*database, error) {
	if name == "" {
		name = tx.Default
	}
	if db, ok := p.databases[name]; ok {
		return db, nil
	}
	return nil, fmt.Errorf("database %q is not configured (configured: %s)", name, strings.Join(p.Names(), ", "))
}
