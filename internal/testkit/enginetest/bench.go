package enginetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Benchmark measures deliveries to the end of their work, with two processes of 32 slots.
func Benchmark(b *testing.B, url string, maker Maker) {
	const slots, batch = 32, 1000
	bed := newBed(b, url, maker)
	for _, name := range []string{"first", "second"} {
		bed.start(orders{Name: name, Queues: []string{"a"}, Slots: slots, Open: true})
	}
	warm := last()
	bed.submit(b.Context(), warm)
	bed.until("the workers work", func() bool { return bed.number("state = 'done'") == 1 })
	b.ResetTimer()
	for from := 1; from <= b.N; from += batch {
		bed.submit(b.Context(), tasks(int64(from), int64(min(from+batch-1, b.N)))...)
	}
	bed.until("all are done", func() bool { return bed.number("state = 'done'") == b.N+1 })
	b.StopTimer()
	require.Equal(b, b.N+1, bed.number("takes = 1"))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	b.Logf("first took %d, second %d of %d", bed.number("taken_by = 'first'"), bed.number("taken_by = 'second'"), b.N)
}
