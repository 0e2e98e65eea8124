package wording

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
)

func TestTheSpeedOfASeriesIsDrawn(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	points := func(reads ...int64) (list []operator.SeriesPoint) {
		for i, n := range reads {
			list = append(list, operator.SeriesPoint{At: at.Add(time.Duration(i) * time.Second), Read: n, Written: 2 * n})
		}
		return list
	}
	curve, fastest := Speed(points(0, 10, 50, 130, 130, 170), 40)
	require.Equal(t, "▂▅█.▅", curve)
	require.InDelta(t, 80, fastest, .1)
	curve, fastest = Speed(points(0, 10, 50, 130, 130), 2)
	require.Equal(t, "▆█", curve, "two seconds each")
	require.InDelta(t, 40, fastest, .1)
	for _, none := range [][]operator.SeriesPoint{nil, points(5)} {
		curve, fastest = Speed(none, 40)
		require.Empty(t, curve)
		require.Zero(t, fastest)
	}
	written := points(0, 10)
	written[1].Read = 0
	_, fastest = Speed(written, 40)
	require.InDelta(t, 20, fastest, .1, "a step that reads none")
}
