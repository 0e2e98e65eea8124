package testahead

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// soak names the environment variable with the number of cases of a long run; a
// tenth of them runs on PostgreSQL.
const soak = "SURFIN_SOAK"

// cases is the number of cases on SQLite. A case costs 35 ms under the race detector, under which all of them
// run: goroutines are the subject here.
const cases = 100

func TestAStepEndsTheSameReadAheadOrNotOnSQLite(t *testing.T) {
	compare(t, testdb.SQLite(t), 1)
}

func TestAStepEndsTheSameReadAheadOrNotOnPostgres(t *testing.T) {
	compare(t, testdb.Postgres(t), 10)
}

func compare(t *testing.T, url string, share int) {
	t.Helper()
	n := cases
	if given := os.Getenv(soak); given != "" {
		var err error
		n, err = strconv.Atoi(given)
		require.NoError(t, err, soak)
	}
	checks := flag.Lookup("rapid.checks")
	given := checks.Value.String()
	require.NoError(t, checks.Value.Set(strconv.Itoa(max(1, n/share))))
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(given)) })
	b := newBench(t, url)
	generator := scenarios()
	rapid.Check(t, func(t *rapid.T) { b.check(t, generator.Draw(t, "case")) })
}
