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
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule C15m.
func TestASnapshotIsReadWithoutAKeyWhateverBecomesOfTheTable(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table twice (n integer, s text)")
		exec(t, db, "insert into twice values (1, 'a'), (1, 'a'), (null, 'b'), (2, 'c')")
		for fetch := 1; fetch < 6; fetch++ {
			c := config{SQL: statement("select n, s from twice where s < ${}", "d"), Snapshot: true, Fetch: fetch}
			r := opened(t, db, c, unknown(t), nil)
			require.NoError(t, r.ReadRecord(t.Context(), make([]row.Value, 2)))
			exec(t, db, "insert into twice values (3, 'c')")
			exec(t, db, "delete from twice where n = 2")
			all, err := rest(r)
			require.NoError(t, err)
			require.Len(t, all, 3, "fetch %d", fetch)
			require.Contains(t, all, "2|c")
			require.NotContains(t, all, "3|c")
			require.NoError(t, r.Close(t.Context()))
			exec(t, db, "delete from twice where n = 3")
			exec(t, db, "insert into twice values (2, 'c')")

			at, err := r.Position()
			require.NoError(t, err)
			require.JSONEq(t, `{"read": 4, "key": null, "snapshot": true}`, string(at))
			for _, again := range []config{c, {SQL: c.SQL, Key: []string{"n"}}} {
				other, err := newReader(db, again, unknown(t))
				require.NoError(t, err)
				require.ErrorContains(t, other.Open(t.Context(), at), "cannot restart: 4 rows of a snapshot were read")
			}
		}
	})
}

func TestASnapshotOutlivesTheChunksAndARestartIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table src(id bigint)")
		e.Exec("create table out(id bigint)")
		for i := range 50 {
			e.Exec(fmt.Sprintf("insert into src(id) values (%d)", i%25))
		}
		s := schema(t, row.Field{Name: "id", Kind: row.Int})
		run := func(fail int64) *core.JobExecution {
			step, err := chunk.New(chunk.Config{
				Name: "copy", Size: 3, Database: e.Database,
				Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
					r, err := newReader(e.Database, config{SQL: statement("select id from src"), Snapshot: true, Fetch: 7}, s)
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
		require.Equal(t, core.StatusFailed, run(20).Status)
		again := run(-1)
		require.Equal(t, core.StatusFailed, again.Status)
		require.Contains(t, again.Error, "cannot restart: ")
		require.Contains(t, again.Error, "--from-start reads all rows again, but rows that the step has committed stay")
		require.Contains(t, again.Error, "empty the target first, or write in mode upsert or replace")
	})
}

func TestASnapshotAndAKeyExcludeEachOther(t *testing.T) {
	t.Parallel()
	err := (&config{SQL: statement("select 1"), Key: []string{"id"}, Snapshot: true}).Validate()
	var at *registry.ConfigError
	require.True(t, errors.As(err, &at))
	require.Equal(t, "snapshot", at.Key)
}
