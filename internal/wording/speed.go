package wording

import (
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
)

// Speed draws the speed of a series over time with at most width signs; a dot means no rows. fastest is the highest
// sign in rows per second.
func Speed(points []operator.SeriesPoint, width int) (curve string, fastest float64) {
	n := min(width, len(points)-1)
	if n < 1 {
		return "", 0
	}
	began := points[0].At
	took := points[len(points)-1].At.Sub(began)
	if took <= 0 {
		return "", 0
	}
	speeds := make([]float64, n)
	before := 0.0
	for i := range speeds {
		rows := rowsAt(points, began.Add(took*time.Duration(i+1)/time.Duration(n)))
		speeds[i] = (rows - before) / (took.Seconds() / float64(n))
		fastest = max(fastest, speeds[i])
		before = rows
	}
	signs := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, speed := range speeds {
		if speed <= 0 {
			b.WriteByte('.')
			continue
		}
		b.WriteRune(signs[min(int(speed/fastest*float64(len(signs))), len(signs)-1)])
	}
	return b.String(), fastest
}

// Within is the 95th percentile of enough executions, or "".
func Within(t *operator.Typical, says func(float64) string) string {
	if p95, enough := t.Within(); enough {
		return says(p95)
	}
	return ""
}

// rowsAt returns the rows at a time between two points: those written if none are read.
func rowsAt(points []operator.SeriesPoint, at time.Time) float64 {
	rows := func(p operator.SeriesPoint) float64 {
		if points[len(points)-1].Read == 0 {
			return float64(p.Written)
		}
		return float64(p.Read)
	}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if at.After(b.At) {
			continue
		}
		if took := b.At.Sub(a.At); took > 0 {
			return rows(a) + (rows(b)-rows(a))*at.Sub(a.At).Seconds()/took.Seconds()
		}
		return rows(b)
	}
	return rows(points[len(points)-1])
}
