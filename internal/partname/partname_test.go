//test:plain

package partname_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/partname"
)

func TestANameKeepsWhatAPartitionMayHave(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a.csv": "a.csv", "Zürich/1-a_b": "Zürich/1-a_b", "a b:c*": "a_b_c_", "": "_", "x\xffy": "x_y",
		strings.Repeat("ü", 150): strings.Repeat("ü", 100), strings.Repeat("x", 199) + "ü": strings.Repeat("x", 199),
	} {
		require.Equal(t, want, partname.Clean(text))
	}
	require.Equal(t, []string{"a", "a-2", "a-3", "b", "a-4"}, partname.Unique([]string{"a", "a", "a-3", "b", "a"}))
}

func TestNamesAreUniqueAndAllowedWhateverTheTexts(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.SampledFrom([]string{"a", "a-2", "a-3", strings.Repeat("é", 100), strings.Repeat("x", 300)}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(text).Draw(t, "texts")
		seen := map[string]bool{}
		for i, name := range partname.Unique(texts) {
			require.False(t, seen[name], "%q of %q", name, texts[i])
			seen[name] = true
			require.True(t, len(name) > 0 && len(name) <= partname.Max && utf8.ValidString(name))
			require.Equal(t, name, partname.Clean(name))
		}
	})
}
