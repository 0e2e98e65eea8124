package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
	eventlog "github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

const (
	secretJob = `job: tell
flow:
- step: note
  tasklet: {shell: {command: [sh, -c, "echo sent with $TOKEN"], env: {TOKEN: "${secret.hook}"}}}
- step: send
  tasklet: {shell: {command: [sh, -c, "echo refused $TOKEN >&2; exit 1"], env: {TOKEN: "Bearer ${secret.hook}"}}}
`
	secretSettings = "secrets: {hook: {file: hook.txt}}\nlog: {events: events.jsonl, level: debug}\n"
	secretValue    = `tr0ub4dor&"3`
)

func secretScene(t *testing.T, url string, files map[string]string) (dir string, run func(args ...string) (code int, shown string)) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	app, err := cli.NewCommand(eventlog.Module())
	require.NoError(t, err)
	return dir, func(args ...string) (int, string) {
		var out bytes.Buffer
		if _, ok := files["surfin.yaml"]; ok {
			args = append(args, "--config", filepath.Join(dir, "surfin.yaml"))
		}
		code := command.Main(context.Background(), app, append([]string{"--database-url", url}, args...), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
}

func TestASecretIsNeitherShownNorStored(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dir, run := secretScene(t, url, map[string]string{"job.yaml": secretJob, "surfin.yaml": secretSettings, "hook.txt": secretValue + "\n"})
		file := filepath.Join(dir, "job.yaml")
		var all strings.Builder
		for _, args := range [][]string{
			{"run", file, "--debug", "--auto-migrate", "true"}, {"show", "1"}, {"show", "1", "--format", "json"}, {"explain", "1"}, {"list"},
			{"sql", "select error_text from surfin_job_execution"}, {"sql", "select error_text, out, context from surfin_step_execution"},
			{"run", file, "--format", "json"},
		} {
			code, shown := run(args...)
			require.NotEqual(t, command.ExitUsage, code, shown)
			all.WriteString(shown)
		}
		events, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
		require.NoError(t, err)
		all.Write(events)
		require.Contains(t, all.String(), "sent with ***", "the result of the first step")
		require.Contains(t, all.String(), "refused Bearer ***", "the message of the second")
		require.NotContains(t, all.String(), "tr0ub4dor")
	})
}

func TestAMissingSecretRefusesTheLaunchWithACure(t *testing.T) {
	t.Parallel()
	dir, run := secretScene(t, testdb.SQLite(t), map[string]string{"job.yaml": secretJob})
	code, shown := run("run", filepath.Join(dir, "job.yaml"))
	require.NotEqual(t, command.ExitCompleted, code)
	require.Contains(t, shown, "job.yaml:4:81: ${secret.hook}: there is no secret hook")
	require.Contains(t, shown, "set SURFIN_SECRET_HOOK, put it into /run/secrets/hook, or set its location in surfin.yaml: secrets: {hook: {file: PATH}}")
	_, shown = run("list", "--format", "json")
	require.NotContains(t, shown, `"tell"`)
}

const secretParameterJob = `job: tell
parameters: {day: {type: date, default: 2026-11-20}, hook: {type: string, secret: true}}
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {validate: {positive: item.id > 0}}
    writer: {table: {name: loaded, create: true}}
    skip: {limit: 1, errors: [validate]}
- step: send
  tasklet: {shell: {command: [sh, -c, "echo sent with $TOKEN; test -e now || { echo refused $TOKEN >&2; exit 1; }"], env: {TOKEN: "Bearer ${params.hook}"}}}
`

func TestASecretParameterIsGivenAgainAtARestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dir, run := secretScene(t, url, map[string]string{"job.yaml": secretParameterJob, "hook.txt": secretValue + "\n", "in.csv": "id\n1\n-2\n"})
		file, given := filepath.Join(dir, "job.yaml"), "hook=@"+filepath.Join(dir, "hook.txt")
		var all strings.Builder
		said := func(code int, args ...string) string {
			t.Helper()
			got, shown := run(args...)
			require.Equal(t, code, got, shown)
			all.WriteString(shown)
			return shown
		}
		missing := said(command.ExitUsage, "run", file, "--auto-migrate", "true")
		require.Contains(t, missing, "job.yaml:11:")
		require.Contains(t, missing, "the secret parameter hook is not given; it is not stored, so each run and restart needs it")
		require.Contains(t, missing, "hook=@FILE, or as the secret hook: the variable SURFIN_SECRET_HOOK")
		said(command.ExitFailed, "run", file, given)
		said(command.ExitUsage, "restart", "1")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "now"), nil, 0o600))
		require.Contains(t, said(command.ExitCompleted, "run", file, "hook="+secretValue), "attempt 2")
		for _, args := range [][]string{
			{"show", "1"}, {"show", "1", "--format", "json"}, {"show", "2", "--format", "json"}, {"explain", "2"}, {"list", "--format", "json"}, {"run", file, "--help"},
			{"sql", "select * from surfin_job_execution"}, {"sql", "select * from surfin_step_execution"}, {"sql", "select * from surfin_job_execution_param"},
		} {
			said(command.ExitCompleted, args...)
		}
		require.Contains(t, all.String(), "refused Bearer ***")
		require.Contains(t, all.String(), "sent with Bearer ***")
		require.NotContains(t, all.String(), "tr0ub4dor")
		require.Contains(t, said(command.ExitUsage, "run", file, "hook=@"+filepath.Join(dir, "none.txt")), "parameter hook: open")
		require.Contains(t, said(command.ExitUsage, "skips", "redrive", "1", "hook=@"+filepath.Join(dir, "none.txt")), "parameter hook: open")
		said(command.ExitCompleted, "skips", "redrive", "1", given)
	})
}
