package text

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func split(t *testing.T, c fixedReaderConfig, text string) (list []string) {
	t.Helper()
	fields, err := c.SplitRaw(item.RawText{Text: text})
	require.NoError(t, err)
	for _, f := range fields {
		require.Equal(t, f.Text, text[f.From:f.To])
		list = append(list, fmt.Sprintf("%s=%s@%d", f.Name, f.Text, f.From))
	}
	return list
}

func TestATextIsSplitByTheColumnsOfItsType(t *testing.T) {
	t.Parallel()
	c := batchConfig("gone.txt")
	c.Item = entry(t)
	require.Equal(t, []string{"account=00x9@1", "amount=    10@5"}, split(t, c, "D00x9    10"))
	require.Equal(t, []string{"company=Zoë  @1"}, split(t, c, "BZoë  "))
	require.Equal(t, []string{"account=00@1", "amount=@3"}, split(t, c, "D00"))
	_, err := c.SplitRaw(item.RawText{Text: "?"})
	require.ErrorContains(t, err, "none of the types")
	require.Implements(t, (*itemextra.Splitter)(nil), &c)
}

func TestABinaryTextIsSplitByItsBytes(t *testing.T) {
	t.Parallel()
	c := accountReader("gone.dat", "ibm037")
	c.Item = account(t)
	require.Contains(t, split(t, c, "hex:"+fmt.Sprintf("%064d", 0)+"00aa00501c"+fmt.Sprintf("%038d", 0)), "packed=00aa00501c@68")
	_, err := c.SplitRaw(item.RawText{Text: "hex:c"})
	require.Error(t, err)
}
