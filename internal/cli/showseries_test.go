package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestTheSpeedOfAnExecutionIsShown(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"in.csv": "id\n1\n2\n3\n",
			"copy.yaml": "job: copy\nflow:\n- {step: first, chunk: {size: 2, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {csv: {path: a.csv}}}}\n" +
				"- {step: second, chunk: {size: 2, reader: {csv: {path: a.csv, item: {id: int}}}, writer: {csv: {path: b.csv}}}}\n",
		})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "copy.yaml")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		r = s.run("show", "1", "--series")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `(?s)^job copy, execution 1: COMPLETED\n\nstep +rows +duration +rows/s +fastest +speed over time\n─\nfirst +3 .*\nsecond +3 .*\nwhole +6 .*█`, r.out)
		r = s.run("show", "1", "--series", "--step", "second", "--format", "json")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.out, `"step": "second"`)
		require.NotContains(t, r.out, `"whole"`)
		r = s.run("show", "1", "--series", "--step", "secnd")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "surfin: execution 1 has run no step secnd (did you mean second?)")
		require.Contains(t, s.run("show", "7", "--series").err, "no execution 7")
		require.Contains(t, s.run("show", "1", "--step", "first").err, "--step is for --series")
	})
}
