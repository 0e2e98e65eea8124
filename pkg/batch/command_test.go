package batch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli"
)

// The command runs, explains and restarts a job in Go by its name.
func TestTheCommandTakesTheNameOfAJobInGo(t *testing.T) {
	t.Setenv("DATABASE_URL", testdb.SQLite(t))
	fails := true
	app, err := batch.Command(batch.Jobs(ledgerJob(func(o Order) error {
		if o.ID == 3 && fails {
			return errors.New("not today")
		}
		return nil
	})))
	require.NoError(t, err)
	surfin := func(want int, args ...string) string {
		var out, errs strings.Builder
		code := cli.Main(t.Context(), app, args, strings.NewReader(""), &out, &errs)
		require.Equal(t, want, code, "%s%s", out.String(), errs.String())
		return out.String() + errs.String()
	}
	require.Contains(t, surfin(0, "run", "ledger", "--help"), "discount")
	surfin(0, "validate", "ledger")
	require.Contains(t, surfin(1, "run", "ledger", "discount=7"), "restart 1")
	explained := surfin(0, "explain", "1")
	require.Contains(t, explained, "not today")
	require.Contains(t, explained, "restart 1")
	require.NotContains(t, explained, "not there any more")
	require.NotContains(t, explained, "--file")
	fails = false
	require.Contains(t, surfin(0, "run", "ledger", "--dry-run"), "3 read: 3 written")
	require.Contains(t, surfin(0, "restart", "1"), "COMPLETED")
	require.Contains(t, surfin(4, "run", "ledger", "discount=7"), "complete")
	require.Contains(t, surfin(2, "run", "leger"), "leger")
}
