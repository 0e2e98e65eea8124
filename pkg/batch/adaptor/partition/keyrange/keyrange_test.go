package keyrange

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/testengine"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func partition(t require.TestingT, db tx.Database, cfg config) ([]core.Partition, error) {
	p, err := newPartitioner(db, cfg)
	require.NoError(t, err)
	return p.Partition(context.Background(), &core.View{})
}

func boundsOf(t require.TestingT, p core.Partition) (low, high int64) {
	a, _ := p.Context.Get("min")
	b, _ := p.Context.Get("max")
	require.Equal(t, fmt.Sprintf("%d..%d", a, b), p.Name)
	return a.(int64), b.(int64)
}

// rowsOf checks that the parts have neither gaps nor overlaps, and returns how many keys each has.
func rowsOf(t require.TestingT, parts []core.Partition, all []int64) []int {
	low, high := slices.Min(all), slices.Max(all)
	counts := make([]int, len(parts))
	for i, p := range parts {
		first, last := boundsOf(t, p)
		require.Equal(t, low, first)
		require.LessOrEqual(t, first, last)
		low = last + 1
		for _, key := range all {
			if first <= key && key <= last {
				counts[i]++
			}
		}
		if i == len(parts)-1 {
			require.Equal(t, high, last)
		}
	}
	return counts
}

func insert(t require.TestingT, db tx.Database, table string, all []int64) {
	for chunk := range slices.Chunk(all, 500) {
		rows := make([]string, len(chunk))
		for i, key := range chunk {
			rows[i] = fmt.Sprintf("(%d)", key)
		}
		testengine.Exec(t, db, "insert into "+table+" values "+strings.Join(rows, ","))
	}
}

// skewed are keys with gaps, clusters, extremes and, unless they are unique, duplicates.
func skewed(unique bool) *rapid.Generator[[]int64] {
	return rapid.Custom(func(t *rapid.T) []int64 {
		near := func(of int64) *rapid.Generator[int64] { return rapid.Int64Range(of, of+60) }
		key := rapid.OneOf(near(-30), near(math.MinInt64), near(math.MaxInt64-60), near(1<<40), near(1<<40), rapid.Int64())
		all := rapid.SliceOfNDistinct(key, 1, 80, rapid.ID[int64]).Draw(t, "keys")
		if !unique {
			all = append(all, rapid.SliceOfN(rapid.SampledFrom(all), 0, 80).Draw(t, "again")...)
		}
		return all
	})
}

// Each way to find the cuts keeps the promise of rule P10: the parts cover every key once, the rows of unique keys
// differ by at most one, and of others a part has at most the rows of one key more.
func TestTheRangesHaveEveryKeyOnceAndTheSameNumberOfRows(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table by_key (id bigint primary key)")
		testengine.Exec(t, db, "create table by_index (id bigint not null)")
		testengine.Exec(t, db, "create index by_index_id on by_index (id)")
		testengine.Exec(t, db, "create table unindexed (id bigint not null)")
		testengine.Exec(t, db, "create view of_view as select id from by_key")
		for _, c := range []struct {
			table, selected string
			unique, indexed bool
			where           string
		}{
			{table: "by_key", selected: "by_key", unique: true, indexed: true},
			{table: "by_index", selected: "by_index", indexed: true},
			{table: "unindexed", selected: "unindexed"},
			{table: "by_key", selected: "of_view", unique: true},
			{table: "by_index", selected: "by_index", where: "id is not null"},
		} {
			t.Run(c.selected+" "+c.where, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					all := skewed(c.unique).Draw(t, "all")
					testengine.Exec(t, db, "delete from "+c.table)
					insert(t, db, c.table, all)
					cfg := config{Table: c.selected, Key: "id", Parts: partcount.Number(rapid.IntRange(1, 50).Draw(t, "parts"))}
					if c.where != "" {
						cfg.Where = statement(c.where)
					}
					k, err := keysOf(context.Background(), db, cfg)
					require.NoError(t, err)
					of, err := k.describe(context.Background())
					require.NoError(t, err)
					require.Equal(t, c.indexed && db.Dialect() != tx.Postgres, of.indexed)
					parts, err := partition(t, db, cfg)
					require.NoError(t, err)
					counts := rowsOf(t, parts, all)
					n := min(int(cfg.Parts), len(all))
					even, most := (len(all)+n-1)/n, 0
					for _, key := range all {
						same := 0
						for _, other := range all {
							if other == key {
								same++
							}
						}
						most = max(most, same)
					}
					require.LessOrEqual(t, slices.Max(counts), even+most-1, "%v", counts)
					require.Positive(t, slices.Min(counts))
					if most == 1 {
						require.Len(t, parts, n)
						require.GreaterOrEqual(t, slices.Min(counts), len(all)/n)
					}
				})
			})
		}
	})
}

func TestBetweenDropsCutsThatNoRowOfTheBoundsHas(t *testing.T) {
	t.Parallel()
	require.Equal(t, []keyRange{{1, 3}, {4, 7}, {8, 9}}, between(1, 9, []int64{-5, 0, 3, 3, 7, 9, 12}))
	require.Equal(t, []keyRange{{math.MinInt64, math.MinInt64}, {math.MinInt64 + 1, math.MaxInt64}},
		between(math.MinInt64, math.MaxInt64, []int64{math.MinInt64, math.MaxInt64}))
	require.Equal(t, []keyRange{{4, 4}}, between(4, 4, nil))
}

// many inserts the keys a, a+b, a+2b ... in the database.
func many(t *testing.T, db tx.Database, table string, n int, key string) {
	series := "with recursive s(i) as (select 1 union all select i + 1 from s where i < 1000) "
	all := series + "select " + key + " from (select (a.i - 1) * 1000 + b.i as i from s a, s b where a.i <= " + fmt.Sprint(n/1000) + ") x"
	testengine.Exec(t, db, "insert into "+table+" "+all)
}

func TestAutoMakesFourPartsForEachWorkerOf10000RowsOrMore(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table kunde (id bigint primary key)")
		many(t, db, "kunde", 45_000, "i * i")
		for _, workers := range []int{1, 2, 0} {
			p, err := newPartitioner(db, config{Table: "kunde", Key: "id"})
			require.NoError(t, err)
			p.(partcount.Planner).SetWorkers(workers)
			parts, err := p.Partition(context.Background(), &core.View{})
			require.NoError(t, err)
			require.Len(t, parts, 4, "%d workers", workers)
			require.Equal(t, fmt.Sprintf("1..%d", 11_250*11_250), parts[0].Name)
		}
	})
}

func TestSQLiteAndMySQLStepThroughAnIndexThatBeginsWithTheColumn(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, `create table kunde (id int, "a.b" int, region int, lone int, primary key (region, "a.b"))`)
		testengine.Exec(t, db, `create index kunde_lone on kunde (id, lone)`)
		indexed := map[string]bool{"id": true, "a.b": false, "region": true, "lone": false}
		if db.Dialect() != tx.MySQL { // it has no partial indexes
			testengine.Exec(t, db, "create index kunde_some on kunde (lone) where lone > 3")
		}
		for column, want := range indexed {
			k, err := keysOf(context.Background(), db, config{Table: "kunde", Key: column})
			require.NoError(t, err)
			of, err := k.describe(context.Background())
			require.NoError(t, err)
			require.Equal(t, want && db.Dialect() != tx.Postgres, of.indexed, column)
		}
		if db.Dialect() == tx.MySQL {
			return
		}
		schema := map[tx.Dialect]string{tx.SQLite: "main", tx.Postgres: "public"}[db.Dialect()]
		testengine.Exec(t, db, "insert into kunde values (1, 7, 5, 3), (2, 9, 6, 4)")
		for _, table := range []string{schema + ".kunde", "kunde"} {
			parts, err := partition(t, db, config{Table: table, Key: "a.b", Parts: 2})
			require.NoError(t, err)
			require.Equal(t, []int{1, 1}, rowsOf(t, parts, []int64{7, 9}))
			k, err := keysOf(context.Background(), db, config{Table: table, Key: "id"})
			require.NoError(t, err)
			of, err := k.describe(context.Background())
			require.NoError(t, err)
			require.Equal(t, db.Dialect() == tx.SQLite, of.indexed, table)
		}
	})
}

func TestALargeTableOfPostgreSQLIsDividedByASample(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		if db.Dialect() != tx.Postgres {
			t.Skip("only PostgreSQL samples blocks")
		}
		testengine.Exec(t, db, "create unlogged table plain (id bigint not null, note text) with (fillfactor = 10, autovacuum_enabled = false)")
		testengine.Exec(t, db, "create unlogged table parted (id bigint not null, note text) partition by range (id)")
		testengine.Exec(t, db, "create unlogged table parted_low partition of parted for values from (minvalue) to (101) with (fillfactor = 10, autovacuum_enabled = false)")
		testengine.Exec(t, db, "create unlogged table parted_high partition of parted for values from (101) to (maxvalue) with (fillfactor = 10, autovacuum_enabled = false)")
		for _, table := range []string{"plain", "parted"} {
			// 4 rows in a block; 90 % of them have 1 % of the keys
			testengine.Exec(t, db, "insert into "+table+" select case when i % 10 = 0 then i * 1000 else i end, repeat('x', 160) from generate_series(1, 40000) i")
			k, err := keysOf(context.Background(), db, config{Table: table, Key: "id"})
			require.NoError(t, err)
			of, err := k.describe(context.Background())
			require.NoError(t, err)
			require.GreaterOrEqual(t, of.blocks, int64(8_000))
			cuts, err := k.sampled(context.Background(), of.blocks, 2)
			require.NoError(t, err)
			parts, err := partition(t, db, config{Table: table, Key: "id", Parts: 2})
			require.NoError(t, err)
			require.Len(t, parts, 2)
			_, cut := boundsOf(t, parts[0])
			for _, cut := range append(cuts[:1], cut) {
				var low int
				require.NoError(t, db.Conn().QueryRowContext(context.Background(), "select count(*) from "+table+" where id <= $1", cut).Scan(&low))
				require.InEpsilon(t, 20_000, low, 0.2)
			}
			testengine.Exec(t, db, "delete from "+table+" where id > 300") // its blocks stay
			parts, err = partition(t, db, config{Table: table, Key: "id", Parts: 2})
			require.NoError(t, err)
			require.Len(t, parts, 2)
			require.Equal(t, "1..149", parts[0].Name, "counted: the sample is too small")
			testengine.Exec(t, db, "truncate "+table)
		}
	})
}

func TestWhereNarrowsTheRangesByBindVariables(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table kunde (id int, region text)")
		testengine.Exec(t, db, "insert into kunde values (1, 'a'), (10, 'b'), (19, 'b'), (100, 'a'), (null, 'a')")
		parts, err := partition(t, db, config{
			Table: "kunde", Key: "id", Parts: 2, Where: statement("region = ${} or id = ${}", "b", int64(10)),
		})
		require.NoError(t, err)
		require.Len(t, parts, 2)
		require.Equal(t, "10..10", parts[0].Name)
		require.Equal(t, "11..19", parts[1].Name)
		parts, err = partition(t, db, config{Table: "kunde", Key: "id", Parts: 2, Where: statement("region = ${} -- none", "c")})
		require.NoError(t, err)
		require.Empty(t, parts)
	})
}

func TestAKeyThatWouldLoseRowsIsRefused(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, "create table kunde (id int, name text, amount numeric(10,2))")
		testengine.Exec(t, db, "insert into kunde values (1, '9', 1.5), (null, '10', 2.5), (7, 'x', 3)")
		for key, want := range map[string]string{"id": "the key is null", "name": "not an integer", "amount": "not an integer", "missing": "missing"} {
			_, err := partition(t, db, config{Table: "kunde", Key: key, Parts: 2})
			require.ErrorContains(t, err, want, key)
		}
		_, err := partition(t, db, config{Table: "nowhere", Key: "id", Parts: 2})
		require.ErrorContains(t, err, "nowhere")
	})
}

func TestAConfigThatCannotBeIsRefusedWhole(t *testing.T) {
	t.Parallel()
	_, err := newPartitioner(nil, config{Parts: core.MaxPartitions + 1})
	for _, key := range []string{"table: ", "key: ", "parts: "} {
		require.True(t, strings.Contains(err.Error(), key), err)
	}
}
