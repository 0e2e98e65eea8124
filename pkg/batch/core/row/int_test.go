package row_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestIntsAreReadAsStrconvReadsThem(t *testing.T) {
	t.Parallel()
	field := row.Field{Name: "n", Kind: row.Int}
	texts := rapid.OneOf(
		rapid.StringMatching(` ?[+-]{0,2}[0-9]{0,21}[.x ]?`),
		rapid.SampledFrom([]string{"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "999999999999999999", "-0", "00", "-", "1_0", "٣"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		if text == "" { // a null, which the field does not allow
			return
		}
		want, wrong := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		got, err := field.Parse(text)
		require.Equal(t, wrong == nil, err == nil, "%q: %v", text, err)
		if err == nil {
			require.Equal(t, want, got.Int(), "%q", text)
		}
	})
}
