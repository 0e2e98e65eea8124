package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const dayJob = `job: day
parameters: {day: {type: date}, n: {type: int, default: 1}, file: {type: path, default: none.csv, identifying: false}}
flow:
- {step: one, tasklet: nothing}
`

func TestBackfillListsWhatBecameOfEachInstance(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"day.yaml": dayJob})
	require.Equal(t, cli.ExitCompleted, s.run("run", "day.yaml", "day=2026-11-02").code)
	r := s.run("backfill", "day.yaml", "day=2026-11-01..2026-11-05/2", "n=1", "file=../none.csv")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	r = s.run("backfill", "day.yaml", "day=2026-11-01..2026-11-03")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Equal(t, 3, strings.Count(r.out, "complete already"), r.out)
	r = s.run("sql", "select count(*) n from surfin_job_execution", "--format", "json")
	require.JSONEq(t, `[{"n": 4}]`, r.out, r.err)
}

func TestBackfillRefusesWhatIsNoRange(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"day.yaml": dayJob})
	for want, args := range map[string]string{
		"no range is given, such as date=":                  "day.yaml day=2026-11-01",
		"day and n are ranges: a backfill has one":          "day.yaml day=2026-11-01..2026-11-02 n=1..2",
		"day is given twice: as a range, and as 2026-11-05": "day.yaml day=2026-11-01..2026-11-02 day=2026-11-05",
		`"x" is not a step`:                                 "day.yaml day=2026-11-01..2026-11-09/x",
		"--parallel 0: at least 1 is needed":                "day.yaml day=2026-11-01..2026-11-02 --parallel 0",
		"which job file?":                                   "",
		"2026-11-02 is after 2026-11-01":                    "day.yaml day=2026-11-02..2026-11-01",
		"parameter colour: the job has no such parameter":   "day.yaml colour=1..2",
	} {
		r := s.run(append([]string{"backfill"}, strings.Fields(args)...)...)
		require.Equal(t, cli.ExitUsage, r.code, args)
		require.Contains(t, r.err, want)
	}
}
