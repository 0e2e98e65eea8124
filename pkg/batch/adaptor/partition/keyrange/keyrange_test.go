package keyrange

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

func TestRangesCoverEverythingWithoutGapOrOverlapAndNeverOverflow(t *testing.T) {
	t.Parallel()
	bound := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}),
		rapid.Int64Range(-20, 20))
	rapid.Check(t, func(t *rapid.T) {
		low, high := bound.Draw(t, "low"), bound.Draw(t, "high")
		if low > high {
			low, high = high, low
		}
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, core.MaxPartitions)).Draw(t, "parts")
		ranges := Split(low, high, n)
		span := uint64(high) - uint64(low)
		if span < uint64(n) {
			require.Len(t, ranges, int(span+1))
		} else {
			require.Len(t, ranges, n)
		}
		require.Equal(t, low, ranges[0].Min)
		require.Equal(t, high, ranges[len(ranges)-1].Max)
		narrow, wide := uint64(math.MaxUint64), uint64(0)
		for i, r := range ranges {
			require.LessOrEqual(t, r.Min, r.Max)
			if i > 0 {
				require.Equal(t, ranges[i-1].Max+1, r.Min)
			}
			width := uint64(r.Max) - uint64(r.Min)
			narrow, wide = min(narrow, width), max(wide, width)
		}
		require.LessOrEqual(t, wide-narrow, uint64(1))
	})
}

func TestEveryRowIsInOneRange(t *testing.T) {
	t.Parallel()
	testengine.AllDatabases(t, func(t *testing.T, db tx.Database) {
		testengine.Exec(t, db, `create table "kunde" (id bigint primary key, "a.b" int)`)
		rapid.Check(t, func(t *rapid.T) {
			testengine.Exec(t, db, "delete from kunde")
			ids := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Int64Range(-50, 50), rapid.Int64()), 0, 30, rapid.ID[int64]).Draw(t, "ids")
			for _, id := range ids {
				testengine.Exec(t, db, fmt.Sprintf("insert into kunde values (%s, 1)", db.Dialect().Placeholder(1)), id)
			}
			parts, err := partition(t, db, config{Table: "kunde", Key: "id", Parts: rapid.IntRange(1, 20).Draw(t, "parts")})
			require.NoError(t, err)
			require.Equal(t, len(ids) == 0, len(parts) == 0)
			for _, id := range ids {
				in := 0
				for _, p := range parts {
					if low, high := boundsOf(t, p); low <= id && id <= high {
						in++
					}
				}
				require.Equal(t, 1, in, "%d", id)
			}
		})
		testengine.Exec(t, db, "delete from kunde")
		testengine.Exec(t, db, "insert into kunde values (1, 7), (2, 9)")
		parts, err := partition(t, db, config{Table: "kunde", Key: "a.b", Parts: 1})
		require.NoError(t, err)
		require.Equal(t, "7..9", parts[0].Name)
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
		require.Equal(t, "10..14", parts[0].Name)
		require.Equal(t, "15..19", parts[1].Name)
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
	_, err := newPartitioner(nil, config{})
	for _, key := range []string{"table: ", "key: ", "parts: "} {
		require.True(t, strings.Contains(err.Error(), key), err)
	}
}
