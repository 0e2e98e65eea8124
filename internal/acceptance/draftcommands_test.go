package acceptance

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const draftOrders = "Order No;Paid;Day;City\n1;4.50;24.12.2026;Bern\n2;10.00;25.12.2026;\nx;1.00;26.12.2026;Rom\n"

// The commands infer, init and copy: what they write runs at once.
func TestADraftOfAFileRunsAtOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"orders.csv": draftOrders + "3;7.25;27.12.2026;Ulm\n", "good.jsonl": `{"id":1,"at":{"x":2}}` + "\n"})
		require.Contains(t, s.said("infer", "orders.csv"), `paid: {type: decimal, from: Paid, scale: 2}`)
		s.said("init", "orders.csv", "--dir", "made")
		code, out := s.run("init", "orders.csv", "--dir", "made")
		require.Equal(t, 2, code)
		require.Contains(t, out, "orders.yaml is there already")
		s.said("init", "orders.csv", "--dir", "made", "--force")
		require.Contains(t, s.said("test", filepath.Join("made", "orders_test.yaml")), "1 passed, 0 failed")
		s.said("run", filepath.Join("made", "orders.yaml"))
		require.Contains(t, s.said("sql", "select count(*) as n, max(day) as d from orders", "--format", "json"), `"n": 4`)

		require.Contains(t, s.said("copy", "good.jsonl", url+"#copied", "--print"), "writer: {table: {name: copied, create: true}}")
		require.Contains(t, s.said("copy", "good.jsonl", url+"#copied"), "COMPLETED")
		require.Contains(t, s.said("sql", "select at_x from copied", "--format", "json"), `"at_x": 2`)
		s.said("copy", "good.jsonl", "out.csv")
		require.Equal(t, "id,at.x\n1,2\n", s.read("out.csv"))
		code, _ = s.run("copy", "good.jsonl", "out.csv")
		require.Equal(t, 2, code)
	})
}
