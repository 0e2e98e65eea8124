package river

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const migrationLock = 0x5375_7266_696e_5276

// CheckSchema returns an error with core.ErrSchemaMissing in its chain if Migrate is needed.
func (e *Engine) CheckSchema(ctx context.Context) error {
	exists, version, err := e.version(ctx)
	if err != nil {
		return err
	}
	want, err := e.newest()
	if err != nil {
		return err
	}
	switch {
	case !exists || version == 0:
		return fmt.Errorf("engine river: the tables in schema %s do not exist: %w", e.config.Schema, core.ErrSchemaMissing)
	case version < want:
		return fmt.Errorf("engine river: the tables in schema %s have version %d, but version %d is needed: %w", e.config.Schema, version, want, core.ErrSchemaMissing)
	}
	return nil
}

// River's own index on args scans its whole list of recent inserts: 5 ms for each work.
const ours = "surfin_delivery_work"

func (e *Engine) version(ctx context.Context) (schema bool, version int, err error) {
	conn, complete := tx.ConnOf(ctx, e.config.Database), false
	err = conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1),
		pg_catalog.to_regclass($2) IS NOT NULL`, e.config.Schema, e.config.Schema+"."+ours).Scan(&schema, &complete)
	if err == nil && complete {
		err = conn.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM `+e.config.Schema+`.river_migration`).Scan(&version)
	}
	if err != nil {
		return false, 0, fmt.Errorf("engine river: find its tables: %w", err)
	}
	return schema, version, nil
}

func (e *Engine) newest() (int, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Schema: e.config.Schema, Logger: quiet(e.config.Log)})
	if err != nil {
		return 0, fmt.Errorf("engine river: %w", err)
	}
	all := migrator.AllVersions()
	return all[len(all)-1].Version, nil
}

// Migrate makes or updates River's tables, and the schema if it is missing.
func (e *Engine) Migrate(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("engine river: migrate schema %s: %w", e.config.Schema, err)
		}
	}()
	pool, err := e.db.PgxPool(ctx, connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrationLock)) //nolint:errcheck // it ends with the connection
	schema, _, err := e.version(ctx)
	if err != nil {
		return err
	}
	if !schema {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA "+e.config.Schema); err != nil {
			return err
		}
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: e.config.Schema, Logger: quiet(e.config.Log)})
	if err != nil {
		return err
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `CREATE INDEX IF NOT EXISTS `+ours+` ON `+e.config.Schema+`.river_job ((args->>'work'))`)
	return err
}
