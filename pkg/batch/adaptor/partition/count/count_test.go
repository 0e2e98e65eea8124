//test:plain

package count

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestEveryPartKnowsItsNumberAndHowManyThereAre(t *testing.T) {
	t.Parallel()
	p, err := newPartitioner(config{Parts: 3})
	require.NoError(t, err)
	parts, err := p.Partition(context.Background(), &core.View{})
	require.NoError(t, err)
	require.Len(t, parts, 3)
	for i, part := range parts {
		require.Equal(t, i, part.Index)
		n, _ := part.Context.Get("count")
		require.Equal(t, int64(3), n)
	}
	require.Equal(t, "2", parts[2].Name)
}

func TestANumberOfPartsThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, -1, core.MaxPartitions + 1} {
		_, err := newPartitioner(config{Parts: n})
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at)
		require.Equal(t, "parts", at.Key)
	}
}
