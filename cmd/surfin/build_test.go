//test:plain

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testtree"
)

// The first command compiles all that it is made of: this is what keeps it
// short. River is 49 of the packages, so that a server needs no build of its
// own; the encodings of East Asia are 4, zstd, xz, bzip2 and zip 15.
func TestTheFirstCommandCompilesLittle(t *testing.T) {
	t.Parallel()
	const most = 431
	out, err := testtree.Command(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	packages := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return strings.HasPrefix(p, "github.com/surfin-batch/surfin/")
	})
	require.Contains(t, packages, "modernc.org/sqlite")
	require.LessOrEqual(t, len(packages), most, "go list -deps ./cmd/surfin, without our own")
	for _, p := range packages {
		for _, heavy := range []string{"github.com/mattn/go-sqlite3", "google.golang.org/grpc", "github.com/charmbracelet/ultraviolet", "github.com/parquet-go/parquet-go"} {
			require.False(t, p == heavy || strings.HasPrefix(p, heavy+"/"), p)
		}
	}
}

// The pages of the console need two packages of the standard library, and nothing else.
func TestTheConsoleAddsItsTemplatesAndNothingElse(t *testing.T) {
	t.Parallel()
	out, err := testtree.Command(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, ".").Output()
	require.NoError(t, err)
	imports := map[string][]string{}
	root := ""
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		root, imports[words[0]] = words[0], words[1:] // the program is the last
	}
	const rooms = "github.com/surfin-batch/surfin/internal/"
	without := map[string]bool{rooms + "console": true}
	imports[rooms+"access"] = slices.DeleteFunc(imports[rooms+"access"], func(p string) bool { return p == "html/template" }) // the sign-in is a page
	for next := []string{root}; len(next) > 0; next = next[1:] {
		for _, p := range imports[next[0]] {
			if !without[p] {
				without[p], next = true, append(next, p)
			}
		}
	}
	var added []string
	for p := range imports {
		if !without[p] && p != root && p != "runtime/cgo" && !strings.HasPrefix(p, "github.com/surfin-batch/surfin/") {
			added = append(added, p)
		}
	}
	slices.Sort(added)
	require.Equal(t, []string{"html", "html/template"}, added)
}

func TestABuildWithoutMetricsAndTracesSaysSoWhenTheyAreConfigured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "surfin")
	out, err := testtree.Command(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.yaml"), []byte("job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
	run := func(environment ...string) (string, error) {
		cmd := testtree.Command(t.Context(), program, "run", "job.yaml")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	for _, configured := range []string{"SURFIN_METRICS_LISTEN=127.0.0.1:0", "SURFIN_TRACES_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=otlp"} {
		said, err := run(configured)
		require.Error(t, err, said)
		require.Contains(t, said, "take the released one", configured)
		require.NotContains(t, said, "COMPLETED", "no job ran unobserved")
	}
	said, err := run("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=none")
	require.NoError(t, err, said)
}
