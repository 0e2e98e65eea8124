package query

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"

	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type copies struct {
	db   tx.Database
	fail int64
}

func (w *copies) Write(ctx context.Context, rows []item.Row) error {
	for _, r := range rows {
		id, _ := r.Get("id")
		if id.Int() == w.fail {
			return exception.Skippable("copy", errors.New("told to fail"))
		}
		if _, err := tx.ConnOf(ctx, w.db).ExecContext(ctx, fmt.Sprintf("insert into out(id) values (%d)", id.Int())); err != nil {
			return err
		}
	}
	return nil
}

// Rule C15a.
func TestARestartInAChunkGoesOnBehindItsLastRowThoughTheTableChanged(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table src(id bigint primary key)")
		e.Exec("create table out(id bigint)")
		e.Exec("insert into src(id) values (10), (20), (30), (40), (50), (60), (70)")
		s := schema(t, row.Field{Name: "id", Kind: row.Int})
		run := func(fail int64) *core.JobExecution {
			step, err := chunk.New(chunk.Config{
				Name: "copy", Size: 10, Database: e.Database, Skip: chunk.LimitSkip{},
				Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
					r, err := newReader(e.Database, config{SQL: statement("select id from src"), Key: []string{"id"}}, s)
					if err != nil {
						return chunk.Parts{}, err
					}
					reader, err := item.RowOf("", s).FromRecords(r)
					return chunk.Parts{Reader: reader, Writers: []item.Writer{item.EraseWriter[item.Row](&copies{e.Database, fail})}}, err
				},
			})
			require.NoError(t, err)
			return e.Run(testengine.Job("copy", &model.StepElement{Step: step}))
		}
		require.Equal(t, core.StatusFailed, run(50).Status)
		require.Equal(t, []int64{10, 20, 30, 40}, e.Ints("select id from out order by id"))
		e.Exec("insert into src(id) values (5), (15), (35), (55)")
		e.Exec("delete from src where id in (10, 20)")
		exec := run(0)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{10, 20, 30, 40, 50, 55, 60, 70}, e.Ints("select id from out order by id"))
	})
}
