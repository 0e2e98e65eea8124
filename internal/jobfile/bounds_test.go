//test:plain

package jobfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/smallfile"
)

func longJob(n int) []byte {
	var b strings.Builder
	b.WriteString("job: long\nparameters: {day: {type: date, default: 2020-01-01}}\nflow:\n")
	for i := range n {
		fmt.Fprintf(&b, "- step: s%d\n  expect: rollbacks == 0\n  tasklet: {note: \"${params.day}\"}\n", i)
		if i > 0 {
			fmt.Fprintf(&b, "  when: steps.s%d.status == 'COMPLETED'\n", i-1)
		}
	}
	return []byte(b.String())
}

// allocations counts the allocations of f, which do not depend on the load of the machine.
func allocations(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

//nolint:paralleltest // it counts what the process allocates
func TestTheWorkOfLoadingGrowsWithTheLengthOfTheFile(t *testing.T) {
	reg := described(t)
	work := func(n int) float64 {
		text := longJob(n)
		return float64(allocations(func() {
			_, err := jobfile.Parse("long.yaml", text, reg)
			require.NoError(t, err)
		}))
	}
	work(10)
	require.Less(t, work(2000)/work(500), 5.0, "four times the steps are to be four times the work")
}

func TestNestingHasALimitWithAPosition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, where string }{
		"brackets that end":     {"job: d\nflow: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "d.yaml:2:106: "},
		"brackets without end":  {"job: d\nflow: " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000), "d.yaml:2:107: "},
		"dashes":                {"job: d\nflow:\n" + strings.Repeat("- ", 50_000) + "x", "d.yaml:3:201: "},
		"keys below keys":       {"job: d\nflow:\n" + blocks(120), "d.yaml:101:100: "},
		"aliases of aliases":    {"job: d\nx-a: &a " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\nflow: " + strings.Repeat("[", 60) + "*a" + strings.Repeat("]", 60), "d.yaml:2:"},
		"brackets that are cut": {"job: d\nflow: " + strings.Repeat("[", 5_000), "d.yaml:"},
	} {
		_, err := jobfile.Parse("d.yaml", []byte(c.text), described(t))
		require.ErrorContains(t, err, c.where, name)
		if name != "brackets that are cut" {
			require.ErrorContains(t, err, "values are nested deeper than 100 levels", name)
		}
	}
}

func blocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

func TestTheSizeOfAFileIsCheckedWhileItIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "big.yaml")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<40)) // a hole: nothing is stored
	require.NoError(t, f.Close())
	_, err = jobfile.Load(path, described(t))
	require.ErrorIs(t, err, smallfile.ErrTooLarge)
}
