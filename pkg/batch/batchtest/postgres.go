package batchtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Postgres is for [Crash.Database] and, called with t, for [On]: each call makes an empty schema in this
// database and returns a URL confined to it. It is dropped when the test ends. That is much faster than a
// database for each run.
func Postgres(databaseURL string) func(t testing.TB) string {
	return func(t testing.TB) string {
		t.Helper()
		u, err := url.Parse(databaseURL)
		if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
			t.Fatal("batchtest: Postgres needs a URL postgres://USER:PASSWORD@HOST/NAME")
		}
		schema := "batchtest_" + strings.ToLower(rand.Text()[:12])
		administrate(t, databaseURL, "CREATE SCHEMA "+schema)
		t.Cleanup(func() { administrate(t, databaseURL, "DROP SCHEMA "+schema+" CASCADE") })
		q := u.Query()
		q.Set("search_path", schema)
		u.RawQuery = q.Encode()
		return u.String()
	}
}

func administrate(t testing.TB, databaseURL, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: databaseURL}})
	if err != nil {
		t.Fatalf("batchtest: %v", err)
	}
	db, err := provider.Database(tx.Default)
	if err == nil {
		_, err = db.Conn().ExecContext(ctx, statement)
	}
	if err := errors.Join(err, provider.Close()); err != nil {
		t.Fatalf("batchtest: %s: %v", statement, err)
	}
}
