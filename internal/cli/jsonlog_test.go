package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func records(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &r), "%s", line)
		if r["time"] != "TIME" { // the scene's placeholder for a time with date, in UTC
			_, err := time.Parse(time.RFC3339Nano, r["time"].(string))
			require.NoError(t, err)
		}
		all = append(all, r)
	}
	require.NotEmpty(t, all)
	return all
}

func find(all []map[string]any, msg string) map[string]any {
	for _, r := range all {
		if r["msg"] == msg {
			return r
		}
	}
	return nil
}

func TestEveryLineOfAJSONLogIsARecordWithItsSubject(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"load.yaml": loadJob, "numbers.csv": numbers,
			"fails.yaml": "job: fails\nflow:\n- {step: a, tasklet: panic}\n",
			"wrong.yaml": "job: wrong\nflow:\n- {step: a, tsklet: x}\n",
		})
		s.must("migrate")
		r := s.run("run", "load.yaml", "--log-format", "json")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		all := records(t, r.err)
		for msg, step := range map[string]string{"job started": "", "step started": "load", "step ended": "load", "job ended": ""} {
			record := find(all, msg)
			require.NotNil(t, record, "%s: %s", msg, r.err)
			require.Equal(t, "load", record["job"])
			require.EqualValues(t, 1, record["execution"])
			if step != "" {
				require.Equal(t, step, record["step"])
			}
		}
		require.Equal(t, "COMPLETED", find(all, "job ended")["status"])

		r = s.run("run", "fails.yaml", "--log-format=json")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		all = records(t, r.err)
		require.Equal(t, "ERROR", find(all, "job ended")["level"])
		require.NotEmpty(t, all[len(all)-1]["hints"], "the error of the command")

		s.write("settings.yaml", "log: {format: json}\n")
		records(t, s.run("validate", "wrong.yaml", "--config", "settings.yaml").err)

		for _, args := range [][]string{{"run", "wrong.yaml"}, {"validate", "wrong.yaml"}, {"shwo"}, {"run"}, {"show", "99"}, {"run", "none.yaml"}} {
			r = s.run(append(args, "--log-format", "json")...)
			require.NotZero(t, r.code, args)
			for _, record := range records(t, r.err) {
				if record["level"] == "ERROR" && args[len(args)-1] == "wrong.yaml" {
					require.EqualValues(t, 3, record["line"])
				}
			}
		}
	})
}

func TestListsSayWhatIsThereInsteadOfNone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
		s.must("migrate")
		require.Zero(t, s.run("run", "load.yaml").code)
		for _, args := range [][]string{{"list", "--job", "laod"}, {"list", "instances", "--job", "laod"}} {
			r := s.run(args...)
			require.Contains(t, r.err, "no job laod in ")
			require.Contains(t, r.err, "did you mean load?")
		}
		require.Contains(t, s.run("list", "--job", "load", "--status", "failed").err, "no such executions of job load in ")
	})
}

func TestListsAreCSVForScripts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
		s.must("migrate")
		read := func(args ...string) [][]string {
			r := s.run(append(args, "--format", "csv")...)
			require.Zero(t, r.code, r.err)
			rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
			require.NoError(t, err)
			return rows
		}
		require.Len(t, read("list"), 1, "the titles alone")
		require.Zero(t, s.run("run", "load.yaml").code)
		rows := read("list")
		require.Equal(t, []string{"execution", "job", "parameters", "status", "exit", "attempt", "started", "duration"}, rows[0])
		require.Equal(t, []string{"1", "load"}, rows[1][:2])
		require.Equal(t, rows, read("list", "jobs"))
		require.Len(t, read("list", "instances"), 2)
		require.Len(t, read("skips", "list", "1"), 1)
		require.Contains(t, read("list", "components")[0], "summary")
		require.Equal(t, cli.ExitUsage, s.run("show", "1", "--format", "csv").code)
	})
}

func TestVersionIsAFlagAsWell(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	r := s.run("--version")
	require.Zero(t, r.code, r.err)
	require.Equal(t, s.run("version").out, r.out)
	require.Contains(t, r.out, "surfin")
}

func TestNumbersOfExecutionsAreCompleted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
		s.must("migrate")
		require.Zero(t, s.run("run", "load.yaml").code)
		for _, command := range []string{"show", "restart", "explain", "stop", "abandon"} {
			r := s.run("__complete", command, "--database-url", s.url, "")
			require.Contains(t, r.out, "1\tload COMPLETED", command)
		}
	})
}
