package table

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAConnectionKeepsFewStatementsPreparedThoughTablesAreMany(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	s := schema(t, row.Field{Name: "id", Kind: row.Int})
	var writers []*writer
	for n := range 70 {
		name := fmt.Sprintf("many_%d", n)
		exec(t, db, fmt.Sprintf("create table %s (id int primary key)", name))
		writers = append(writers, writerTo(t, db, s, config{Name: name, Mode: modeDelete, Key: []string{"id"}}))
	}
	require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error { // on one connection
		for range 2 {
			for _, w := range writers {
				require.NoError(t, w.WriteRecords(ctx, s, [][]row.Value{ints(1)}))
			}
		}
		current, _ := tx.From(ctx, db.Name())
		var kept int
		require.NoError(t, current.Conn().QueryRowContext(ctx, "select count(*) from pg_prepared_statements where statement like 'delete from%'").Scan(&kept))
		require.Equal(t, 64, kept)
		return nil
	}))
}

func TestAStatementWhoseTypeIsMadeAnewIsPreparedAnew(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "mood", Kind: row.String})
	create := "create type mood as enum ('good', 'bad'); create table moods (id int primary key, mood mood)"
	exec(t, db, create)
	w := writerTo(t, db, s, config{Name: "moods", Mode: modeUpsert, Key: []string{"id"}})
	record := []row.Value{row.IntValue(1), row.StringValue("good")}
	require.NoError(t, write(db, w, s, record))
	exec(t, db, "drop table moods; drop type mood; "+create)
	require.ErrorContains(t, write(db, w, s, record), "type", "the connection has the old one")
	require.NoError(t, write(db, w, s, record))
}
