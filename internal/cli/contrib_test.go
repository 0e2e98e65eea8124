package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/urlpath"
)

const lakeJob = `job: lake
flow:
- step: load
  chunk:
    reader: {parquet: {path: in.parquet, item: {id: int}}}
    writer: {csv: out.csv}
`

func TestACommandWithoutContribNamesItsComponentsAndRefusesTheirJobs(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"lake.yaml": lakeJob})
	for _, c := range contrib.Components() {
		require.Contains(t, s.run("list", "components").out, c.Name)
		require.Contains(t, s.run("list", "components", "--format", "json").out, `"with": "`+c.Family+`"`)
		require.Contains(t, s.run("describe", c.Name).out, c.Lacks()+": "+contrib.Cure(c.Family))
		if c.Kind != urlpath.Kind { // surfin.yaml has places
			require.Contains(t, s.run("schema").out, c.Lacks())
		}
	}
	for _, command := range []string{"validate", "run"} {
		r := s.run(command, "lake.yaml")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "lake.yaml:5:14: this program is built without the reader parquet")
		require.Contains(t, r.err, "surfin build --with parquet")
	}
}

func TestABuildIsRefusedBeforeGoIsAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"lake.yaml": lakeJob, "wrong.yaml": "job: wrong\nflow: []\n"})
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	for want, args := range map[string][]string{
		"--with parket: contrib has no such family": {"--with", "parket"},
		"no such file":  {"--for", "none*.yaml"},
		"wrong.yaml:2:": {"--for", "*.yaml", "--replace", checkout},
	} {
		r := s.run(append([]string{"build"}, args...)...)
		require.Equal(t, cli.ExitUsage, r.code, want)
		require.Contains(t, r.err, want)
	}
}
