package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Sessions outside the pool must see the same data as the pool's.
func (l Lent) server(ctx context.Context, ours []setting) (server, error) {
	own, giveBack, err := l.acquire(ctx)
	if err != nil {
		return server{}, fmt.Errorf("connect: %w", err)
	}
	s, after := server{config: own.Conn().Config()}, func(context.Context, *pgx.Conn) error { return nil }
	if l.pool != nil {
		c := l.pool.Config()
		s.config, s.before = c.ConnConfig, c.BeforeConnect
		if c.AfterConnect != nil {
			after = c.AfterConnect
		}
	}
	copied, err := queryLent(ctx, own.Conn().PgConn(), s.connector(), ours)
	if err = errors.Join(err, giveBack()); err != nil {
		return server{}, err
	}
	s.byStatement, s.after = true, func(ctx context.Context, conn *pgx.Conn) error {
		if err := after(ctx, conn); err != nil {
			return err
		}
		if err := conn.PgConn().Exec(ctx, copied).Close(); err != nil {
			return fmt.Errorf("apply the settings of the application's pool: %w", err)
		}
		return nil
	}
	return s, nil
}

func queryLent(ctx context.Context, conn *pgconn.PgConn, another driver.Connector, ours []setting) (string, error) {
	pooled, err := isPooled(ctx, conn)
	if err == nil && pooled {
		if err := refuseSharedSessions(ctx, conn, another); err != nil {
			return "", err
		}
	}
	copied := ""
	if err == nil {
		copied, err = copySettings(ctx, conn, ours)
	}
	if err != nil {
		return "", fmt.Errorf("read the settings of a session of the application's pool: %w", err)
	}
	return copied, nil
}

func (l Lent) file(ctx context.Context) (path string, err error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = conn.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path)
	if err != nil {
		return "", fmt.Errorf("find the file of the application's pool: %w", err)
	}
	if path == "" {
		return "", errors.New("the pool of the application is SQLite in memory, which is not supported: each connection would have its own database; name a file")
	}
	if strings.ContainsAny(path, "?#%") {
		return "", fmt.Errorf("the SQLite file %s: the characters ? # %% are not supported", path)
	}
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return "", fmt.Errorf("read the journal mode of %s: %w", path, err)
	}
	if mode != "wal" {
		return "", fmt.Errorf("the journal mode of %s is %s, but must be wal (rule R5): add ?_pragma=journal_mode(WAL) to the URL that the application opens", path, mode)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the pool of the application names the file %s, which does not exist: a custom VFS is not supported", path)
	}
	return path, nil
}
