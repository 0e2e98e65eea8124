package gormdb

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule O1.
func TestTheVictimOfADeadlockRunsAgain(t *testing.T) {
	t.Parallel()
	for kind, url := range map[string]string{"postgres": testdb.Postgres(t), "mysql": testdb.MySQL(t)} {
		t.Run(kind, func(t *testing.T) {
			provider, err := Open(t.Context(), map[string]Config{tx.Default: {URL: url}})
			require.NoError(t, err)
			defer provider.Close()
			db, err := provider.Database(tx.Default)
			require.NoError(t, err)
			for _, statement := range []string{"create table pair (id int primary key, n int)", "insert into pair values (1, 0), (2, 0)"} {
				_, err := db.Conn().ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			var both, runs sync.WaitGroup
			both.Add(2)
			for _, order := range [][]int{{1, 2}, {2, 1}} {
				runs.Go(func() {
					met := sync.OnceFunc(func() {
						both.Done()
						both.Wait()
					})
					err := gormtx.Transact(t.Context(), tx.NewManager(db), tx.Attr{}, func(ctx context.Context) error {
						for _, id := range order {
							if _, err := tx.ConnOf(ctx, db).ExecContext(ctx, "update pair set n = n + 1 where id = "+string(rune('0'+id))); err != nil {
								return err
							}
							met()
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			runs.Wait()
			var sum int
			require.NoError(t, db.Conn().QueryRowContext(t.Context(), "select sum(n) from pair").Scan(&sum))
			require.Equal(t, 4, sum)
		})
	}
}
