package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// completeParts gives step s of execution 1 parts that are complete, but for the first ten.
func completeParts(e *testengine.Engine, n int) {
	e.T.Helper()
	addParts(e, 1, n)
	e.Exec(`UPDATE surfin_step_execution SET status = 'COMPLETED', exit_code = 'COMPLETED', error_text = '', position = '{"csv":{"line":1000,"byte":123456},"table":{}}',
		context = '{"surfin.partition":{"first":1,"last":100000,"path":"/data/in/file-000001.csv"}}', read_count = 1000, write_count = 1000, commit_count = 10 WHERE manager_id = 1 AND id > 11`)
	if e.Database.Dialect() == tx.Postgres {
		e.Exec("ANALYZE")
	}
}

func BenchmarkManyParts(b *testing.B) {
	for _, parts := range []int{1000, 10_000} {
		for name, url := range map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres} {
			e := testengine.New(b, url(b))
			exec := e.Run(testengine.Job("j", e.Tasklet("s", tx.Attr{}, func(context.Context, *core.StepContribution) error { return fmt.Errorf("out of luck") })))
			completeParts(e, parts)
			service, err := New(Config{Repository: e.Repository.Ports(), Provider: e.Provider, Registry: &registry.Registry{}})
			require.NoError(b, err)
			for act, f := range map[string]func() error{
				"explain": func() error {
					_, err := service.Explain(b.Context(), ExplainRequest{Execution: exec.ID})
					return err
				},
				"show":    func() error { _, err := service.Show(b.Context(), ShowRequest{Execution: exec.ID}); return err },
				"flow":    func() error { _, err := service.ExecutionFlow(b.Context(), exec.ID); return err },
				"inspect": func() error { _, err := service.Inspect(b.Context(), InspectRequest{Execution: exec.ID}); return err },
				"timeline": func() error {
					_, err := service.Timeline(b.Context(), TimelineRequest{Execution: exec.ID})
					return err
				},
			} {
				b.Run(strings.Join([]string{name, act, fmt.Sprint(parts)}, "/"), func(b *testing.B) {
					for b.Loop() {
						require.NoError(b, f())
					}
				})
			}
		}
	}
}
