package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheNewestRepetitionIsFoundWithFewQueries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(-1, 1_000_000).Draw(t, "newest")
		queries, last := 0, int64(-1)
		got, err := newestNumber(func(n int64) (bool, error) {
			queries++
			if n <= want {
				last = n
			}
			return n <= want, nil
		})
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, want, last, "the last positive answer is about the newest")
		require.LessOrEqual(t, queries, 42)
	})
}
