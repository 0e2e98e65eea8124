package river

import (
	"testing"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
)

// BenchmarkLookup is the cost of a thousand deliveries among twenty thousand waiting ones, for which
// PostgreSQL has no statistics yet.
func BenchmarkLookup(b *testing.B) {
	const all, some = 20_000, 1000
	e := migrated(b, Config{Database: open(b, testdb.Postgres(b))})
	ds := make([]engine.Delivery, all)
	for i := range ds {
		ds[i] = task(int64(i)+1, 1)
	}
	if err := e.Enqueue(b.Context(), ds...); err != nil {
		b.Fatal(err)
	}
	part := ds[all-some:]
	b.Run("missing", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.Missing(b.Context(), part...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			for i := range part {
				part[i].Epoch++
			}
			if err := e.Enqueue(b.Context(), part...); err != nil {
				b.Fatal(err)
			}
		}
	})
}
