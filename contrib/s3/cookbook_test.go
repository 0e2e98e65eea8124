package s3_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// The job of docs/cookbook/lake.md, killed at random moments.
func TestParquetFilesOfABucketAreInMySQLOnce(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "jobs", "cookbook", "lake.yaml"))
	require.NoError(t, err)
	orders, err := os.ReadFile(filepath.Join("..", "..", "jobs", "data", "orders.parquet"))
	require.NoError(t, err)
	const files = 5
	run := func(after time.Duration) (rows string) {
		shop := testdb.MySQL(t)
		s := newSite(t, 0, testdb.EmptySQLite(t))
		s.job = strings.ReplaceAll(string(text), "s3://lake/", "s3://"+s.bucket+"/")
		s.args, s.env = []string{"day=2026-11-27"}, []string{"SURFIN_DATABASES_SHOP=" + shop}
		want := []string{}
		for i := range files {
			s.gateway.put(t, s.bucket, fmt.Sprintf("in/2026-11-27/%d.parquet", i), string(orders))
			want = append(want, fmt.Sprintf("done/2026-11-27/%d.parquet", i))
		}
		if after > 0 {
			cmd := s.command("")
			require.NoError(t, cmd.Start())
			time.Sleep(after)
			require.NoError(t, cmd.Process.Kill())
			cmd.Wait() //nolint:errcheck // it was killed
		}
		s.end("")
		s.gateway.clean(t, s.bucket, append(want, "in.csv")...)
		s.gateway.clear(t, s.bucket)
		return dump(t, shop)
	}
	began := time.Now()
	want := run(0)
	took := time.Since(began)
	require.NotEmpty(t, want)
	for range times("KILLS", 2) {
		require.Equal(t, want, run(rand.N(took)), "the rows differ") //nolint:gosec // any moment
	}
}

func dump(t *testing.T, url string) string {
	t.Helper()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	defer provider.Close()
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	rows, err := tx.ConnOf(t.Context(), db).QueryContext(t.Context(), "SELECT concat_ws('|', id, customer, amount, ordered_at) FROM orders ORDER BY id")
	require.NoError(t, err)
	defer rows.Close()
	var list []string
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		list = append(list, text)
	}
	require.NoError(t, rows.Err())
	return strings.Join(list, "\n")
}
