package table

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestEachModeKeepsTheContractOfWriters(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := stock(t, db)
		in := item.RowOf("", s)
		record := func(id, n int64) item.Row { return row.New(s, ints(id, n)) }
		const sync writeMode = "upsert, deleting what is missing"
		for _, c := range []struct {
			mode   writeMode
			want   string
			chunks [][]item.Row
		}{
			{sync, "2:22 3:31 4:40", [][]item.Row{{record(3, 30), record(2, 22)}, {record(4, 40), record(3, 31)}}},
			{modeInsert, "1:10 2:20 3:30 4:40 5:50", [][]item.Row{{record(3, 30)}, {record(5, 50), record(4, 40)}}},
			{modeUpsert, "1:10 2:22 3:31 4:40", [][]item.Row{{record(3, 30), record(2, 22)}, {record(4, 40), record(3, 31)}}},
			{modeUpdate, "1:11 2:23", [][]item.Row{{record(1, 11), record(2, 22)}, {record(2, 23)}}},
			{modeDelete, "", [][]item.Row{{record(1, 0)}, {record(2, 0), record(3, 0)}}},
			{modeTruncate, "3:30 4:40 5:50", [][]item.Row{{record(3, 30)}, {record(5, 50), record(4, 40)}}},
			{modeReplace, "2:20 3:10 4:40", [][]item.Row{{record(3, 10)}, {record(4, 40), record(2, 20)}}},
		} {
			t.Run(string(c.mode), func(t *testing.T) {
				cfg := config{Name: "stock", Mode: c.mode}
				if c.mode == sync {
					cfg.Mode, cfg.DeleteMissing = modeUpsert, deleteHard
				}
				if c.mode != modeInsert && c.mode != modeTruncate && c.mode != modeReplace {
					cfg.Key = []string{"id"}
				}
				if db.Dialect() == tx.MySQL && cfg.OnMySQL() != nil {
					_, err := newWriter(db, cfg, s)
					require.Error(t, err)
					return
				}
				itemtest.Writer(t, itemtest.WriterConfig{
					New:    func(t testing.TB) item.Writer { return made(t, db, cfg, in) },
					Chunks: func(testing.TB) []item.Items { return itemtest.Chunks(c.chunks...) },
					In: func(t testing.TB, f func(ctx context.Context) error) error {
						return tx.NewManager(db).Do(context.Background(), tx.Attr{}, f)
					},
					Contents: func(t testing.TB) (text string) {
						for _, r := range readAll(t, db, s, "select id, n from stock", "id") {
							text += fmt.Sprintf(" %s:%s", r[0], r[1])
						}
						return strings.TrimSpace(text)
					},
					Clear: func(t testing.TB) {
						exec(t, db, "delete from stock")
						exec(t, db, "insert into stock (id, n) values (1, 10), (2, 20)")
					},
					Want:   c.want,
					Hidden: c.mode == modeReplace,
				})
			})
		}
	})
}

func made(t testing.TB, db tx.Database, cfg config, in item.Type) item.Writer {
	t.Helper()
	var target item.RecordWriter
	var err error
	if cfg.DeleteMissing != "" {
		target, err = newSync(db, cfg, in.Schema(), of, false)
	} else if cfg.Mode == modeTruncate || cfg.Mode == modeReplace {
		target, err = newRefill(db, cfg, in.Schema(), of)
	} else {
		target, err = newWriter(db, cfg, in.Schema())
	}
	require.NoError(t, err)
	w, err := in.ToRecords(target)
	require.NoError(t, err)
	return w
}
