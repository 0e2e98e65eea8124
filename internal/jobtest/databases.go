package jobtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/testfile"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func sourcesOf(file *testfile.File, config Config) (map[string]string, error) {
	sources := map[string]string{tx.Default: "sqlite"}
	for name, source := range file.Databases {
		if variable, is := strings.CutPrefix(source, testfile.FromEnvironment); is {
			source = ""
			if config.Getenv != nil {
				source = config.Getenv(variable)
			}
			if !strings.HasPrefix(source, "postgres") {
				return nil, fmt.Errorf("databases: %s: the variable %s has no URL postgres://USER:PASSWORD@HOST/NAME: set it for these tests", name, variable)
			}
		}
		sources[name] = source
	}
	return sources, nil
}

func makeDatabases(ctx context.Context, sources map[string]string, open Open, folder string) (urls map[string]string, drop func(ctx context.Context) error, err error) {
	urls = map[string]string{}
	var made []func(ctx context.Context) error
	drop = func(ctx context.Context) error {
		var errs []error
		for _, one := range slices.Backward(made) {
			errs = append(errs, one(ctx))
		}
		return errors.Join(errs...)
	}
	for i, name := range slices.Sorted(maps.Keys(sources)) {
		source := sources[name]
		if source == "sqlite" {
			urls[name] = "sqlite:" + filepath.Join(folder, fmt.Sprintf("test%d.db", i))
			continue
		}
		schema := "surfin_test_" + strings.ToLower(rand.Text()[:12])
		of, err := url.Parse(source)
		if err != nil {
			return nil, drop, fmt.Errorf("databases: %s: the URL cannot be read: %s", name, secret.Line(source))
		}
		if err := administrate(ctx, open, folder, source, "CREATE SCHEMA "+schema); err != nil {
			return nil, drop, fmt.Errorf("databases: %s: create a schema for the test: %w", name, err)
		}
		made = append(made, func(ctx context.Context) error {
			if err := administrate(ctx, open, folder, source, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
				return fmt.Errorf("databases: %s: drop the schema of the test: %w", name, err)
			}
			return nil
		})
		query := of.Query()
		query.Set("search_path", schema)
		of.RawQuery = query.Encode()
		urls[name] = of.String()
	}
	return urls, drop, nil
}

func administrate(ctx context.Context, open Open, folder, url, statement string) (err error) {
	const name = "administration"
	session, err := open(ctx, map[string]string{tx.Default: "sqlite:" + filepath.Join(folder, "administration.db"), name: url})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	db, err := session.Provider.Database(name)
	if err != nil {
		return err
	}
	_, err = db.Conn().ExecContext(ctx, statement)
	return err
}
