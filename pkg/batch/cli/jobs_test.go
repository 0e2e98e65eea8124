package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	command "github.com/surfin-batch/surfin/pkg/batch/adaptor/cli"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The command runs, explains and restarts a job in Go by its name.
func TestTheCommandTakesTheNameOfAJobInGo(t *testing.T) {
	t.Setenv("DATABASE_URL", testdb.SQLite(t))
	type line struct{ ID int64 }
	fails := true
	job := batch.NewJob("ledger").
		Parameter(batch.Parameter{Name: "discount", Type: core.TypeInt, Default: 0}).
		Step("table", batch.Use("sql", "create table lines(id bigint); insert into lines values (1), (2), (3)")).
		Step("bill", batch.Chunk{
			Size:   1,
			Reader: batch.Use("query", batch.Config{"sql": "select id from lines", "key": []string{"id"}, "item": "line"}),
			Processors: []batch.Component{batch.ProcessorOf[line, line](func(_ context.Context, l line) (line, error) {
				if l.ID == 3 && fails {
					return l, errors.New("not today")
				}
				return l, nil
			})},
			Writers: []batch.Component{batch.Use("table", batch.Config{"name": "ledger", "create": true})},
		})
	app, err := cli.NewCommand(batch.Jobs(job), batch.Item[line]("line"))
	require.NoError(t, err)
	surfin := func(want int, args ...string) string {
		var out, errs strings.Builder
		code := command.Main(t.Context(), app, args, strings.NewReader(""), &out, &errs)
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
