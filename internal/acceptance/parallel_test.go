package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// Rule P9.
func TestDraftsAndCopiesTakeAFileInParts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		var text strings.Builder
		text.WriteString("id,name\n")
		for n := range 300 {
			fmt.Fprintf(&text, "%d,\"name\n%d\"\n", n, n)
		}
		s.write("orders.csv", text.String())
		s.said("init", "orders.csv", "--parallel", "3")
		require.Contains(t, s.said("test", "orders_test.yaml"), "1 passed")
		require.Contains(t, s.said("run", "orders.yaml"), "load: 3 partitions: 3 COMPLETED")
		s.said("copy", "orders.csv", "out.csv", "--parallel", "2")
		require.Equal(t, text.String(), s.read("out.csv"))
		s.said("copy", "orders.csv", "table:again", "--parallel", "2")
		require.Contains(t, s.said("sql", "select count(*) as n from again"), "300")

		for args, want := range map[string]string{
			"init orders.csv --parallel 0":                        "--parallel 0: at least 1",
			"init table:orders --parallel 2 --force":              "--parallel divides a csv or jsonl file",
			"copy orders.csv out.json --parallel 2":               "--parallel divides a csv or jsonl file",
			"copy orders.csv table:orders --parallel 2 --replace": "--replace and --parallel exclude each other",
		} {
			code, out := s.run(strings.Fields(args)...)
			require.Equal(t, 2, code, args)
			require.Contains(t, out, want, args)
		}
	})
}
