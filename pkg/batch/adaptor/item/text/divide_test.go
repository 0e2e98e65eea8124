package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Rule P9.
func TestLinesAndRecordsAreReadInParts(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	wide.WriteString("HEAD of the file\n")
	for i := range 300 {
		fmt.Fprintf(&wide, "D%05dAda     Köln  1200\n%s", i, []string{"", "\n", "D0000x bad\r\n", "\xff\n"}[i%4])
	}
	path := fileOf(t, "\xEF\xBB\xBF"+wide.String()+"D00009Zoë     Ürdi-00012")
	require.Equal(t, 6, itemkit.Divided(t, func() item.Reader {
		cfg := readerConfig(path)
		cfg.Trailer = nil
		return fixedReader(t, cfg)
	}))
	require.Equal(t, 6, itemkit.Divided(t, func() item.Reader {
		r, err := newLinesReader(linesConfig{Path: path, MaxLine: 25})
		require.NoError(t, err)
		return r
	}))
	path = fileOf(t, strings.Repeat("00001Ada   00002\n\n\n\n\n\n", 5))
	require.Equal(t, 6, itemkit.Divided(t, func() item.Reader {
		return fixedReader(t, fixedReaderConfig{Path: path, Length: 11, Columns: map[string]columnConfig{"id": {At: "1-5"}, "name": {At: "6-8"}, "city": {At: "9-9"}, "cents": {At: "10-11"}}})
	}))
	for _, content := range []string{"", "\n", "\n\n", "x", "\r\n\r\nx\r\n"} {
		path := fileOf(t, content)
		itemkit.Divided(t, func() item.Reader {
			r, err := newLinesReader(linesConfig{Path: path})
			require.NoError(t, err)
			return r
		})
	}
}
