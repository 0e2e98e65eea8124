package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const foundJob = `job: load
parameters:
  day: {type: date}
  note: {type: string, default: x, identifying: false}
flow:
- {step: first, tasklet: nothing}
- {step: second, tasklet: panic}
`

// Rule OP10.
func TestListFindsExecutions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": foundJob})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		for _, day := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
			r := s.run("run", "load.yaml", "day="+day, "note=missing"+day[9:])
			require.Equal(t, cli.ExitFailed, r.code, r.err)
		}
		for _, c := range []struct {
			args []string
			ids  []string
			says string
		}{
			{[]string{"--param", "day:2026-11-22"}, []string{"2"}, ""},
			{[]string{"--param", "day:2026-11-22", "--param", "note:missing2"}, []string{"2"}, ""},
			{[]string{"--text", "PANIC", "--param", "note:missing3"}, []string{"3"}, ""},
			{[]string{"--text", "panic", "--limit", "2", "--count"}, []string{"3", "2"}, "INFO 3 executions\nINFO there are more: --before 2\n"},
			{[]string{"--text", "panic", "--limit", "2", "--before", "2"}, []string{"1"}, ""},
			{[]string{"--after", "1"}, []string{"2", "3"}, ""},
			{[]string{"--after", "1", "--limit", "1"}, []string{"2"}, "there are more: --after 2\n"},
			{[]string{"--ended-since", "1h"}, []string{"3", "2", "1"}, ""},
			{[]string{"--ended-until", "1h"}, nil, "INFO no such executions in "},
			{[]string{"--longer-than", "1d", "--job", "load"}, nil, "INFO no such executions of job load in "},
			{[]string{"--has", "lost,redrives"}, nil, "INFO no such executions in "},
			{[]string{"--worker", "no-such-host"}, nil, "INFO no such executions in "},
			{[]string{"--param", "dya:2026-11-22"}, nil, "WARN no execution in the history has a parameter dya, did you mean day?\n"},
			{[]string{"--running", "--count"}, nil, "0 executions\n"},
		} {
			r := s.run(append([]string{"list"}, c.args...)...)
			require.Equal(t, cli.ExitCompleted, r.code, "%v: %s", c.args, r.err)
			require.Equal(t, c.ids, s.ids(append([]string{"list"}, c.args...)...), "%v", c.args)
			require.Contains(t, r.err, c.says, "%v", c.args)
		}
		for _, c := range []struct{ args, says string }{
			{"--has=skip_left", "surfin: --has skip_left: no such mark, did you mean skips_left? (allowed: skips_left, redrives, stop_requested, lost)\n"},
			{"--param=day", "surfin: --param day: NAME:VALUE is expected, such as day:2026-11-21\n"},
			{"--longer-than=soon", "surfin: --longer-than soon: a duration such as 90d, 2w, 36h or 15m is expected\n"},
			{"--ended-since=soon", "surfin: --ended-since soon: a date (2026-11-21)"},
		} {
			r := s.run("list", c.args)
			require.Equal(t, cli.ExitUsage, r.code)
			require.Contains(t, r.err, c.says)
		}
		r := s.run("list", "--before", "3", "--after", "1")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "surfin: --after 1: before is set as well: set only one of them\n")
	})
}
