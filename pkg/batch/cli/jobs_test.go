package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

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

func TestTestsInYAMLRunAJobInGo(t *testing.T) {
	t.Parallel()
	job := batch.NewJob("ledger").
		Parameter(batch.Parameter{Name: "input", Type: core.TypePath}).
		Step("load", batch.Chunk{
			Size:    2,
			Reader:  batch.Use("csv", batch.Config{"path": "${params.input}", "item": batch.Config{"id": "int", "name": "string"}}),
			Writers: []batch.Component{batch.Use("table", batch.Config{"name": "ledger", "create": true})},
		})
	app, err := cli.NewCommand(batch.Jobs(job))
	require.NoError(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger_test.yaml")
	text := `job: ledger
tests:
- name: lines are loaded
  params: {input: in.csv}
  files: {in.csv: [{id: 1, name: tea}]}
  expect: {tables: {ledger: [{id: 1, name: tea}]}}
- name: data beside the test
  params: {input: data/in.csv}
  with: [data]
  expect: {tables: {ledger: [{id: 2, name: ink}]}}
`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data/in.csv"), []byte("id,name\n2,ink\n"), 0o600))
	run := func() (int, string) {
		var out, errs strings.Builder
		code := command.Main(t.Context(), app, []string{"test", path}, strings.NewReader(""), &out, &errs)
		return code, out.String() + errs.String()
	}
	code, out := run()
	require.Zero(t, code, out)
	require.Contains(t, out, "2 passed, 0 failed")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, "job: ledger", "job: leger", 1)), 0o600))
	code, out = run()
	require.Equal(t, 2, code)
	require.Contains(t, out, "leger")
}
