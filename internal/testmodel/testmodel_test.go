package testmodel

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

// Under the race detector a case costs 70 ms on SQLite, which is Go code itself,
// and 30 ms on PostgreSQL.

func TestTheEngineDoesWhatTheRulesSayOnSQLite(t *testing.T) {
	compare(t, testdb.SQLite(t), 250, 1)
}

func TestTheEngineDoesWhatTheRulesSayOnPostgres(t *testing.T) {
	compare(t, testdb.Postgres(t), 250, 10)
}

func compare(t *testing.T, url string, cases, share int) {
	t.Helper()
	if given := os.Getenv(soak); given != "" {
		n, err := strconv.Atoi(given)
		require.NoError(t, err, soak)
		cases = max(1, n/share)
	}
	checks := flag.Lookup("rapid.checks")
	given := checks.Value.String()
	require.NoError(t, checks.Value.Set(strconv.Itoa(cases)))
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(given)) })
	b := newBench(t, url)
	generator := scenarios()
	rapid.Check(t, func(t *rapid.T) { b.check(t, generator.Draw(t, "case")) })
}
