package browser

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const (
	mostRequests = 8
	mostFirst    = 80 << 10 // bytes of a first visit, compressed
	mostFurther  = 40 << 10
)

// Times depend on the load of the machine, so they are only printed.
func TestAFirstVisitIsSmallAndSoon(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		server := s.serve()
		for _, path := range []string{"/", "/executions/1", "/executions/1/log", "/jobs/payments", "/executions?text=decimal"} {
			b := newTab(t, server.at, "first")
			b.open(path)
			if evaluate[bool](b, `!!document.getElementById("main").dataset.live`) {
				b.awaits("/stream")
			}
			b.settle()
			requests, bytes := b.traffic()
			t.Logf("%s: %d requests, %d bytes, first paint after %.0f ms", path, len(requests), bytes, b.firstPaint())
			require.LessOrEqual(t, len(requests), mostRequests, "%s:\n%s", path, strings.Join(requests, "\n"))
			require.LessOrEqual(t, bytes, int64(mostFirst), path)
			for _, further := range []string{"/jobs", path} {
				b.open(further)
				b.settle()
				_, all := b.traffic()
				require.LessOrEqual(t, all-bytes, int64(mostFurther), "%s after %s", further, path)
				bytes = all
			}
		}
	})
}

// awaits waits until an address that has this text was asked for.
func (b *tab) awaits(text string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		requests, _ := b.traffic()
		return strings.Contains(strings.Join(requests, "\n"), text)
	}, patience, poll)
}

func (b *tab) traffic() (requests []string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(requests, b.asked...), b.bytes
}

// firstPaint is in milliseconds after the begin of the navigation.
func (b *tab) firstPaint() float64 {
	return evaluate[float64](b, `performance.getEntriesByName("first-paint")[0]?.startTime ?? 0`)
}
