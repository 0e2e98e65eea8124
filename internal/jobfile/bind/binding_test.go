package bind

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizesArePowersOf1024(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "512": 512, "64KB": 64 << 10, "10MB": 10 << 20, "1GB": 1 << 30} {
		got, err := parseSize(text)
		require.NoError(t, err)
		require.EqualValues(t, want, got)
	}
	for _, text := range []string{"", "KB", "-1", "1.5MB", "1TB", "1kb", "+1", "9999999999GB", " 1"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
}
