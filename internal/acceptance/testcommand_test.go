package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The command test runs the tests of jobs/nested_test.yaml, and shows what is not as expected.
func TestTestsOfJobsRunOnADatabaseOfTheirOwn(t *testing.T) {
	t.Parallel()
	files := shippedJob(t, "nested.yaml", "nested_test.yaml", "data/stations.geojson", "data/orders.json")
	files["bad_test.yaml"] = strings.NewReplacer("sku: tea, count: 2", "sku: tee, count: 2", "written: 2, skipped: 3", "written: 3, skipped: 3",
		"index: 3, row: 1", "index: 3, row: 9").Replace(files["nested_test.yaml"])
	files["wrong_test.yaml"] = "job: nested.yaml\ntests:\n- name: a\n  expects: {}\n  files: {a.csv: [1]}\n"
	s := newScene(t, "postgres://nobody@127.0.0.1:1/none", files)
	code, out := s.run("test", "nested_test.yaml")
	require.Zero(t, code, out)
	require.Contains(t, out, "2 passed, 0 failed\n")

	code, out = s.run("test", "bad_test.yaml", "--junit", "report.xml")
	require.Equal(t, 1, code)
	for _, want := range []string{
		"FAIL  bad_test.yaml: bad elements are skipped, and all others are in the tables", "step lines: expected written 3, got 2\n",
		"table order_line (- expected, + got):\n", "\n      - 1 | 1 | Ann | tee | 2 | 2026-11-20 | 4.50 | null\n", "\n      + 1 | 1 | Ann | tea | 2 | 2026-11-20 | 4.5 | null\n",
		"skips (- expected, + got):\n", "1 passed, 1 failed\n",
	} {
		require.Contains(t, out, want)
	}
	require.Contains(t, s.read("report.xml"), `tests="2" failures="1"`)

	code, out = s.run("test", "wrong_test.yaml")
	require.Equal(t, 2, code)
	require.Contains(t, out, `wrong_test.yaml:4:3: unknown key "expects"`)
	require.Contains(t, out, "wrong_test.yaml:5:19: ")
}
