//test:plain

package partcount_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAutoMakesFourPartsForEachWorkerNoneOfThemSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   partcount.Wanted
		size int64
		want int
	}{
		{partcount.Wanted{Workers: 3}, 1000, 12},
		{partcount.Wanted{Workers: 3}, 59, 5},
		{partcount.Wanted{Workers: 3}, 9, 1},
		{partcount.Wanted{Workers: 3}, 0, 1},
		{partcount.Wanted{}, 1000, 64},
		{partcount.Wanted{Number: 7, Workers: 3}, 9, 7},
		{partcount.Wanted{Workers: math.MaxInt}, math.MaxInt64, core.MaxPartitions},
	} {
		require.Equal(t, c.want, c.of.Of(c.size, 10), "%+v of %d", c.of, c.size)
	}
}

func TestTheNumberIsPossibleAndPartsOfAutoAreLargeEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := partcount.Wanted{Number: partcount.Number(rapid.IntRange(0, core.MaxPartitions).Draw(t, "number")), Workers: rapid.IntRange(0, 1<<40).Draw(t, "workers")}
		size, least := rapid.Int64Range(0, math.MaxInt64).Draw(t, "size"), rapid.Int64Range(1, 1<<30).Draw(t, "least")
		n := w.Of(size, least)
		require.True(t, n >= 1 && n <= w.Most() && n <= core.MaxPartitions)
		if w.Number == 0 && n > 1 {
			require.GreaterOrEqual(t, size/int64(n), least)
		}
	})
}

func TestANumberThatNoStepCanHaveIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, partcount.Number(core.MaxPartitions).Check("parts"))
	require.ErrorContains(t, partcount.Number(core.MaxPartitions+1).Check("parts"), "parts: 100001 is not between 1 and 100000")
	require.Error(t, partcount.Number(-1).Check("parts"))
}
