package secret

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestATextThatIsNotMaskedHasNoSecret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[ab"\\é\n<&]{4,12}`), 1, 4).Draw(t, "values")
		var forms []string
		for _, value := range values {
			forms = append(forms, formsOf(value)...)
		}
		for _, form := range forms {
			require.GreaterOrEqual(t, len(form), 2)
		}
		m := newMasks(forms)
		pieces := rapid.SliceOfN(rapid.SampledFrom(append(forms, "a", "b", "aé", cut, "\n", "")), 0, 6).Draw(t, "pieces")
		for i := range pieces {
			pieces[i] = pieces[i][:rapid.IntRange(0, len(pieces[i])).Draw(t, "length")]
		}
		text := strings.Join(pieces, "")
		if masked := m.replace(text); masked != text {
			require.True(t, m.mayHave(text), masked)
		}
		require.Equal(t, strings.Contains(text, cut) || m.whole.Replace(text) != text || strings.Contains(text, mask), m.mayHave(text) || strings.Contains(text, mask))
	})
}
