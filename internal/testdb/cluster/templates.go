package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

func makeTemplates(ctx context.Context, room, admin string) error {
	dir := filepath.Join(room, "templates")
	err := os.Mkdir(dir, 0o755) //nolint:gosec // nothing there is secret
	var server string
	if err == nil {
		server, err = emptyTemplate(ctx, admin)
	}
	if err == nil {
		err = migrate(ctx, "sqlite:"+filepath.Join(dir, testdb.SQLiteTemplate), server)
	}
	if err == nil {
		err = os.Setenv(testdb.Templates, dir)
	}
	if err != nil {
		return fmt.Errorf("templates of the test databases: %w", err)
	}
	return nil
}

func emptyTemplate(ctx context.Context, admin string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil {
		return "", fmt.Errorf("%s: %w", testdb.Variable, err)
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+testdb.PostgresTemplate+" TEMPLATE template0")
	u.Path = "/" + testdb.PostgresTemplate
	return u.String(), errors.Join(err, conn.Close(ctx))
}

func migrate(ctx context.Context, urls ...string) error {
	for _, at := range urls {
		provider, err := gormdb.Open(ctx, map[string]gormdb.Config{"template": {URL: at}})
		if err != nil {
			return err
		}
		db, err := provider.Database("template")
		if err == nil {
			err = repository.New(db, repository.Options{}).Migrate(ctx)
		}
		if err := errors.Join(err, provider.Close()); err != nil {
			return err
		}
	}
	return nil
}
