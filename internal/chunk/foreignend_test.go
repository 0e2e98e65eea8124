package chunk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// scripted writes its items, and with item 13 runs a script on the same connection.
type scripted struct {
	inserts
	script string
	ignore bool // the error of the script
	runs   int
}

func (w *scripted) Write(ctx context.Context, items []int) error {
	if err := w.inserts.Write(ctx, items); err != nil {
		return err
	}
	for _, i := range items {
		if i != 13 {
			continue
		}
		w.runs++
		current, _ := tx.From(ctx, w.db.Name())
		if _, err := current.Conn().ExecContext(ctx, w.script); err != nil && !w.ignore {
			return err
		}
	}
	return nil
}

func loadScripted(t *testing.T, e *testengine.Engine, w *scripted) *core.JobExecution {
	t.Helper()
	w.db = e.Database
	all := func(error) bool { return true }
	s, err := chunk.New(chunk.Config{
		Name: "load", Size: 10, Database: e.Database,
		Retry: chunk.Retry{Limit: 3, Retryable: all}, Skip: chunk.LimitSkip{Limit: 100, Skippable: all},
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{Reader: item.EraseReader[int](&numbers{n: 25}), Writers: []item.Writer{item.EraseWriter[int](w)}}, nil
		},
	})
	require.NoError(t, err)
	return e.Run(testengine.Job("load", &model.StepElement{Step: s}))
}

func TestAScriptThatEndsTheChunksTransactionEndsTheStep(t *testing.T) {
	t.Parallel()
	type outcome struct {
		dialects []tx.Dialect
		script   string
		stays    int // rows of the chunk that exist nevertheless
	}
	both, postgres := []tx.Dialect{tx.SQLite, tx.Postgres}, []tx.Dialect{tx.Postgres}
	for name, c := range map[string]outcome{
		"commit and begin":         {both, "select 1; commit; begin", 10},
		"commit":                   {both, "select 1; commit", 10},
		"rollback and begin":       {both, "select 1; rollback; begin", 0},
		"rollback":                 {both, "select 1; rollback", 0},
		"rollback and write":       {both, "select 1; rollback; begin; insert into out values (99)", 0},
		"commit and chain":         {postgres, "select 1; commit and chain", 10},
		"commit, begin and fail":   {postgres, "select 1; commit; begin; select 1/0", 10},
		"rollback, begin and fail": {postgres, "select 1; rollback; select 1/0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e := engine(t, url)
				if e.Database.Dialect() == tx.SQLite && len(c.dialects) == 1 {
					t.Skip("SQLite has no such statement")
				}
				w := &scripted{script: c.script}
				exec := loadScripted(t, e, w)
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Contains(t, exec.Error, tx.ErrForeignEnd.Error())
				require.Equal(t, 1, w.runs, "it is neither tried again nor split")
				require.Equal(t, []int64{1}, e.Ints(epochs), "nor judged")
				rows := 10
				if e.Database.Dialect() == tx.Postgres {
					rows += c.stays
				}
				require.Equal(t, upTo(rows), e.Ints(allRows))
				require.Equal(t, int64(1), e.Step(exec, "load").Counters.Commit)
			})
		})
	}
}

func TestScriptsMayUseSavepointsAndLocalSettings(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		script := "savepoint a; insert into out values (99); rollback to savepoint a; release a"
		if e.Database.Dialect() == tx.Postgres {
			script += "; set local work_mem = '8MB'; set local search_path = pg_catalog, public"
		}
		exec := loadScripted(t, e, &scripted{script: script})
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, upTo(25), e.Ints(allRows))
	})
}

func TestResettingTheTransactionsSettingsIsNoLossOfTheOwner(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"reset all":           "RESET ALL",
		"select 1; reset all": "RESET ALL",
	} {
		e := engine(t, testdb.Postgres(t))
		w := &scripted{script: script}
		exec := loadScripted(t, e, w)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, says)
		require.NotContains(t, exec.Error, core.ErrLostOwner.Error())
	}
}

func TestASQLiteTransactionThatIsGoneIsNotCheckpointed(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	e.Exec("create table single(id integer primary key)")
	e.Exec("insert into single values (1)")
	w := &scripted{script: "insert or rollback into single values (1)", ignore: true}
	exec := loadScripted(t, e, w)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, tx.ErrForeignEnd.Error())
	require.Equal(t, 1, w.runs)
	require.Equal(t, upTo(10), e.Ints(allRows))
}
