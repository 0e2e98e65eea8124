//test:plain

package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func BenchmarkReader(b *testing.B) {
	var file strings.Builder
	const n = 100_000
	for i := range n {
		fmt.Fprintf(&file, "D%3d%06d  1.50\n", i%1000, i%10000)
	}
	path := fileOf(b, file.String()+"T\n")
	for b.Loop() {
		r, err := newFixedReader(fixedReaderConfig{Path: path, Columns: transferColumns(), Record: "D", Trailer: &trailerConfig{Begins: "T"}}, transfer(b))
		require.NoError(b, err)
		require.NoError(b, r.Component().(item.Opener).Open(b.Context(), nil))
		for items := r.NewItems(1000); r.Fill(b.Context(), items, 1000) == nil; items.Reset() {
		}
		require.NoError(b, r.Component().(item.Closer).Close(b.Context()))
	}
}
