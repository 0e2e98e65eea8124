//test:plain

package contrib_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/contrib"
	"github.com/surfin-batch/surfin/internal/assembly"
	known "github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/testtree"
)

func TestTheLeanCommandKnowsAllComponentsOfContrib(t *testing.T) {
	t.Parallel()
	stock, err := assembly.NewRegistry()
	require.NoError(t, err)
	full, err := assembly.NewRegistry(contrib.Module())
	require.NoError(t, err)
	var has []known.Component
	for _, c := range full.Components() {
		if _, is := stock.Component(c.Kind, c.Name); !is {
			name, _ := known.Find(c.Kind, c.Name)
			has = append(has, known.Component{Kind: c.Kind, Name: c.Name, Summary: c.Summary, Family: name.Family})
		}
	}
	require.Equal(t, has, known.Components(), "internal/contrib names each component with its summary")
	require.Empty(t, known.Missing(full))
	for _, family := range known.Families() {
		require.DirExists(t, family)
	}
}

func run(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := testtree.Command(t.Context(), name, args...)
	cmd.Dir = dir
	// No module may be fetched.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "GO"+"PROXY=off", "DATABASE_URL=sqlite:"+filepath.Join(t.TempDir(), "lake.db"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The commands of an author, without a network.
func TestAProgramForTheJobsIsBuiltAndRunsThem(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	lean, built := filepath.Join(dir, "surfin"), filepath.Join(dir, "lake")
	fetched := testtree.Command(t.Context(), "go", "build", "-o", lean, "./cmd/surfin") // fills the module cache
	fetched.Dir = root
	fetched.Env = append(os.Environ(), "GOWORK=off")
	text, err := fetched.CombinedOutput()
	require.NoError(t, err, "%s", text)
	out, err := run(t, root, lean, "run", "jobs/lake.yaml")
	require.Error(t, err)
	require.Contains(t, out, "built without the reader parquet")
	out, err = run(t, root, lean, "build", "--for", "jobs/lake.yaml", "-o", built)
	require.NoError(t, err, out)
	require.Contains(t, out, "metrics, traces, parquet")
	out, err = run(t, root, built, "run", "jobs/lake.yaml")
	require.NoError(t, err, out)
	require.Contains(t, out, "COMPLETED")
	out, err = run(t, dir, lean, "init", "app", "meter", "--with", "parquet", "--replace", root)
	require.NoError(t, err, out)
	out, err = run(t, filepath.Join(dir, "meter"), "go", "run", ".", "describe", "parquet")
	require.NoError(t, err, out)
	require.True(t, strings.Contains(out, "## Configuration"), out)
}
