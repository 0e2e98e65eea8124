package humanize_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/humanize"
)

func TestATimeWithoutAnOffsetIsInTheZone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("x", 2*60*60)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-20": now.Add(-38 * time.Hour), "2026-11-20T08:30": now.Add(-29*time.Hour - 30*time.Minute), "2026-11-20 08:30:00": now.Add(-29*time.Hour - 30*time.Minute),
		"2026-11-20T08:30:00Z": now.Add(-27*time.Hour - 30*time.Minute), "36h": now.Add(-36 * time.Hour), "2w": now.Add(-14 * 24 * time.Hour),
	} {
		got, is := humanize.ParseMoment(text, zone, now)
		require.True(t, is, text)
		require.Equal(t, want, got, text)
	}
	for _, wrong := range []string{"", "yesterday", "-3h", "2026-13-01"} {
		_, is := humanize.ParseMoment(wrong, zone, now)
		require.False(t, is, wrong)
	}
}
