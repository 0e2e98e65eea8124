package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAPlanListsWhatSomeOutcomeLeadsTo(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"around.yaml": `job: around
flow:
- {step: one, tasklet: nothing}
- {step: two, tasklet: panic, next: {FAILED: four}}
- {step: three, tasklet: nothing}
- {step: four, tasklet: nothing}
- {step: last, tasklet: panic}
`,
		"limit.yaml": `job: limit
flow:
- {step: one, tasklet: nothing, start_limit: 2}
- {step: two, tasklet: panic, next: {FAILED: one}}
`})
	require.Equal(t, cli.ExitFailed, s.run("run", "around.yaml").code)
	require.Contains(t, s.run("explain", "1").out, "\nA restart passes one, runs two again from its start and then, if two fails, "+
		"passes four and runs last again from its start; if it completes, runs three and continues with four.\n")
	require.Equal(t, cli.ExitFailed, s.run("run", "limit.yaml").code)
	require.Contains(t, s.run("explain", "2").out, "\nA restart passes one, runs two again from its start and then, if two fails, "+
		"fails at one, whose start_limit is used up.\n")
	require.Contains(t, s.run("run", "around.yaml", "--dry-run").out, "\nStep one (tasklet): passed, execution 1 completed it\n\n"+
		"Step two (tasklet): would run panic, since its last attempt did not complete\n\n"+
		"Step four (tasklet): passed, execution 1 completed it\n if two fails, or if three completes\n\n")
}

func TestWhatASummaryAndAPlanOfferIsThere(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"in.csv": "id\nx\ny\nz\n4\n",
		"ends.yaml": `job: ends
flow:
- {step: one, tasklet: nothing, next: {"*": two}}
- {step: two, tasklet: panic, next: {FAILED: three, COMPLETED: end}}
- {step: three, tasklet: nothing, next: fail}
`,
		"skips.yaml": `job: skips
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: out.csv}
    skip: {limit: 2}
`})
	require.Equal(t, cli.ExitFailed, s.run("run", "ends.yaml").code)
	require.Contains(t, s.run("explain", "1").out, "\nA restart passes one, runs two again from its start and then, if two fails, passes three; if it succeeds with another exit code than COMPLETED, continues with three.\n")
	r := s.run("run", "skips.yaml")
	require.Equal(t, cli.ExitFailed, r.code)
	require.NotContains(t, r.out, "skips list")
}
