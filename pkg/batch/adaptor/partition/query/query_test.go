package query

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testengine"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func rowType(t testing.TB, fields ...row.Field) item.Type {
	t.Helper()
	schema, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return item.RowOf("", schema)
}

func partition(t *testing.T, db tx.Database, cfg config) ([]core.Partition, error) {
	t.Helper()
	p, err := newPartitioner(db, cfg)
	require.NoError(t, err)
	return p.Partition(context.Background(), &core.View{})
}

func TestEveryRowIsAPartThatKnowsItsColumns(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table region (code text, since date, at timestamp, active boolean, n bigint, x double precision)")
		testengine.Exec(t, db, "insert into region values ('north east', '2020-02-29', '2021-01-02 03:04:05', true, 9007199254740993, 1.5), ('zoo', '2021-01-01', '2021-01-02 03:04:05', true, -1, 2)")
		parts, err := partition(t, db, config{
			SQL: statement("select code as name, since, at, active, n, x as \"X Y\", 1 as other from region where n < ${} order by code desc", int64(1)<<62),
			Item: rowType(t, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "since", Kind: row.DateKind}, row.Field{Name: "at", Kind: row.Timestamp},
				row.Field{Name: "active", Kind: row.Bool}, row.Field{Name: "n", Kind: row.Int}, row.Field{Name: "x", Kind: row.Float, From: "X Y"}),
		})
		require.NoError(t, err)
		require.Len(t, parts, 2)
		require.Equal(t, []string{"zoo", "north_east"}, []string{parts[0].Name, parts[1].Name})
		require.Equal(t, 1, parts[1].Index)
		for key, want := range map[string]any{
			"since": row.NewDate(2020, 2, 29), "at": time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC), "active": true, "n": int64(9007199254740993), "x": 1.5,
		} {
			got, ok := parts[1].Context.Get(key)
			require.True(t, ok, key)
			require.Equal(t, want, got, key)
		}
		require.NotContains(t, parts[1].Context.Keys(), "other")
		_, hasName := parts[1].Context.Get("name")
		require.False(t, hasName)
	})
}

func TestWithoutANamePartsAreNamedByTheirRowAndOtherwiseMadeUnique(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table region (code int)")
		testengine.Exec(t, db, "insert into region values (7), (7), (8)")
		n := row.Field{Name: "code", Kind: row.Int}
		parts, err := partition(t, db, config{SQL: statement("select code from region order by code"), Item: rowType(t, n)})
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2", "3"}, []string{parts[0].Name, parts[1].Name, parts[2].Name})
		n.Name = "name"
		parts, err = partition(t, db, config{SQL: statement("select code as name from region order by code"), Item: rowType(t, n)})
		require.NoError(t, err)
		require.Equal(t, []string{"7", "7-2", "8"}, []string{parts[0].Name, parts[1].Name, parts[2].Name})
		parts, err = partition(t, db, config{SQL: statement("select code as name from region where code < 0"), Item: rowType(t, n)})
		require.NoError(t, err)
		require.Empty(t, parts)
	})
}

func TestAValueThatDoesNotFitFailsAndNamesTheRow(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table region (code text)")
		testengine.Exec(t, db, "insert into region values ('7'), ('x'), (null)")
		n := rowType(t, row.Field{Name: "code", Kind: row.Int})
		for from, want := range map[string]string{"code = 'x'": "row 1: field code", "code is null": "row 1: field code", "code is not null": "row 2: "} {
			_, err := partition(t, db, config{SQL: statement("select code from region where " + from + " order by code"), Item: n})
			require.ErrorContains(t, err, want)
		}
		_, err := partition(t, db, config{SQL: statement("select code as cod from region"), Item: n})
		require.ErrorContains(t, err, "the result has no column code (did you mean cod?)")
		_, err = partition(t, db, config{SQL: statement("select nothing"), Item: n})
		require.ErrorContains(t, err, "nothing")
	})
}

func TestItemSaysAtLoadWhatPartsKnow(t *testing.T) {
	t.Parallel()
	c := Components()[0]
	parts, err := c.Parts(&config{Item: rowType(t, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "n", Kind: row.Int}, row.Field{Name: "d", Kind: row.DateKind})})
	require.NoError(t, err)
	require.Len(t, parts, 2)
	require.Equal(t, "int64", parts["n"].String())
	require.Equal(t, "row.Date", parts["d"].String())
	open, err := row.Open()
	require.NoError(t, err)
	for want, it := range map[string]item.Type{
		"name the columns":                nil,
		"does not name columns and types": item.RowOf("", open),
		"n is int null":                   rowType(t, row.Field{Name: "n", Kind: row.Int, Nullable: true}),
		"index is the partition's number": rowType(t, row.Field{Name: "index", Kind: row.Int}),
	} {
		_, err := c.Parts(&config{Item: it})
		require.ErrorContains(t, err, want)
		var at *registry.ConfigError
		require.ErrorAs(t, (&config{SQL: statement("select 1"), Item: it}).Validate(), &at)
		require.Equal(t, "item", at.Key)
	}
}
