package table

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAnEncodingServesAsLongAsItsPlan(t *testing.T) {
	t.Parallel()
	testdb.Each(t, testAnEncodingServesAsLongAsItsPlan)
}

func testAnEncodingServesAsLongAsItsPlan(t *testing.T, url string) {
	t.Parallel()
	ctx := context.Background()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database("")
	require.NoError(t, err)
	exec(t, db, "create table target (id bigint, v bigint)")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "v", Kind: row.Int})
	w := writerTo(t, db, s, config{Name: "target"})
	send := func(change func()) (done bool) {
		e := w.NewEncoding()
		require.NoError(t, e.EncodeRecords(s, [][]row.Value{ints(1, 2)}))
		change()
		require.NoError(t, tx.NewManager(db).Do(ctx, tx.Attr{}, func(ctx context.Context) (err error) {
			if done, err = w.WriteEncoded(ctx, e); done || err != nil {
				return err
			}
			return w.WriteRecords(ctx, s, [][]row.Value{ints(1, 2)})
		}))
		return done
	}
	require.True(t, send(func() {}))
	require.False(t, send(func() {
		exec(t, db, "drop table target")
		exec(t, db, "create table target (id bigint, v text)")
		require.NoError(t, provider.ForceReconnect(ctx, tx.Default))
	}))
	require.True(t, send(func() {}))
	require.Equal(t, [][]row.Value{ints(2)}, readAll(t, db, nil, "select count(*) as n from target", "n"))
	require.Nil(t, writerTo(t, db, s, config{Name: "target", Batch: 7}).NewEncoding())
}
