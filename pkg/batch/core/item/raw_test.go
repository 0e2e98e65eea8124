package item_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func TestATextIsStoredWholeOrSaysThatItIsNot(t *testing.T) {
	t.Parallel()
	sum := func(text string) string {
		hash := sha256.Sum256([]byte(text))
		return hex.EncodeToString(hash[:])
	}
	long := strings.Repeat("é", item.MaxPayloadBytes)
	for _, c := range []struct {
		text, want string
		length     int
		truncated  bool
		sum        string
	}{
		{text: "a,\x00\"é\n", want: "a,\x00\"é\n"},
		{text: "Jos\xe9,7", want: "Jos\uFFFD,7", truncated: true, sum: sum("Jos\xe9,7")},
		{text: long, want: long[:item.MaxPayloadBytes-2], truncated: true, sum: sum(long)},
		{text: "beginning", want: "beginning", length: 1 << 20, truncated: true},
	} {
		got, truncated, hash := item.RawText{Text: c.text, Length: max(int64(c.length), int64(len(c.text)))}.Bounded()
		require.Equal(t, c.want, got.Text)
		require.Equal(t, c.truncated, truncated)
		require.Equal(t, c.sum, hash)
		require.False(t, got.IsHidden())
	}
	require.True(t, item.RawText{Text: "x", Length: 1}.Hidden().IsHidden())
}

func TestATextIsHiddenWhereTheItemHasRedactedFields(t *testing.T) {
	t.Parallel()
	type secret struct {
		Inner []struct {
			Card string `redact:"true"`
		}
	}
	type open struct{ Any any }
	require.True(t, item.HidesFields(item.NewSlice[*secret](0)))
	require.False(t, item.HidesFields(item.NewSlice[open](0)), "what JSON makes of an any has no tags")
	require.False(t, item.HidesFields(item.NewSlice[item.Row](0)))
}
