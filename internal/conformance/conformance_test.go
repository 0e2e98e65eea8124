package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func isSoak() bool { return os.Getenv("SURFIN_SOAK") != "" }

const folderVariable = "CONFORMANCE_DIR"

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type family func(t *testing.T) func(t *testing.T, s document)

func families() map[string]family {
	return map[string]family{"chunk": chunkFamily, "flow": flowFamily, "lifecycle": lifeFamily}
}

// A scenario counts once, and passes only if all its runs pass: on each
// database and with each kind of reader.
func TestConformance(t *testing.T) {
	runFolder(t, scenarioFolder(t), "conformance")
}

func TestOwnScenarios(t *testing.T) {
	runFolder(t, "own", "own scenarios")
}

func runFolder(t *testing.T, dir, title string) {
	files, err := readFolder(dir)
	require.NoError(t, err)
	for _, name := range familyNames(files) {
		t.Run(name, func(t *testing.T) {
			documents := ofFamily(files, name)
			run, known := families()[name]
			require.True(t, known, "%s: there is no family %s (%d scenarios)", title, name, len(documents))
			var count tally
			t.Cleanup(func() { report(t, title+": "+name+" "+count.String()) })
			one := run(t)
			for _, d := range documents {
				t.Run(d.id, func(t *testing.T) {
					defer count.add(t)
					one(t, d)
				})
			}
		})
	}
}

type tally struct{ passed, failed, skipped atomic.Int64 }

func (c *tally) add(t *testing.T) {
	switch {
	case t.Failed():
		c.failed.Add(1)
	case t.Skipped():
		c.skipped.Add(1)
	default:
		c.passed.Add(1)
	}
}

func (c *tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed.Load(), c.failed.Load(), c.skipped.Load())
}

// report prints a line to standard output, without a test's name before it.
func report(t *testing.T, line string) {
	t.Helper()
	_, err := fmt.Fprintln(os.Stdout, line)
	require.NoError(t, err)
}

// scenarioFolder is testdata, or the folder in the environment: relative to this package or to the root of
// the module.
func scenarioFolder(t *testing.T) string {
	t.Helper()
	given := os.Getenv(folderVariable)
	if given == "" {
		return "testdata"
	}
	if _, err := os.Stat(given); err != nil && !filepath.IsAbs(given) {
		return filepath.Join("..", "..", given)
	}
	return given
}
