package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestEveryWrongUsageIsOneClearLineAndExitTwo(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.EmptySQLite(t), map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "surfin: which job file?\n usage: surfin run FILE [NAME=VALUE ...]\n"},
		{[]string{"run", "none.yaml"}, "surfin: job file: open DIR/none.yaml: no such file or directory\n"},
		{[]string{"run", "load.yaml", "1996"}, "surfin: \"1996\" is not a parameter: NAME=VALUE is expected\n"},
		{[]string{"run", "load.yaml", "year=1", "year=2"}, "surfin: parameter year is given twice\n"},
		{[]string{"run", "load.yaml", "year=1980", "yaer=1"}, "surfin: parameter year: 1980 is less than 1990\n" +
			"surfin: parameter yaer: the job has no such parameter (it has: input, least, year)\n parameters: surfin run DIR/load.yaml --help\n"},
		{[]string{"run", "load.yaml", "--agian"}, "surfin: unknown flag: --agian\n help: surfin run --help\n"},
		{[]string{"run", "load.yaml", "--format", "xml"}, "surfin: invalid argument \"xml\" for \"--format\" flag: allowed: table, json\n help: surfin run --help\n"},
		{[]string{"rnu"}, "surfin: unknown command \"rnu\" for \"surfin\"\n"},
		{[]string{"restart", "twelve"}, "surfin: \"twelve\" is not an execution: a number such as 12 is expected\n"},
		{[]string{"restart", "12"}, "surfin: no execution 12 in DATABASE\n all executions: surfin list --database-url URL\n"},
		{[]string{"show", "12"}, "surfin: no execution 12 in DATABASE\n all executions: surfin list --database-url URL\n"},
		{[]string{"show"}, "surfin: which execution? one number is expected\n usage: surfin show EXECUTION [flags]\n"},
		{[]string{"list", "--status", "DONE"}, "surfin: --status DONE: no such status; known: STARTING, STARTED, PARKED, STOPPING, STOPPED, COMPLETED, FAILED, ABANDONED, UNKNOWN\n"},
		{[]string{"list", "components", "--kind", "x"}, "surfin: --kind x: no such kind; known: reader, processor, writer, tasklet, listener, partitioner, decider, place, item\n"},
		{[]string{"sql", "select 1", "--database", "orders"}, "surfin: no database \"orders\"; known: default\n"},
		{[]string{"sql"}, "surfin: one statement is expected (in quotes)\n usage: surfin sql STATEMENT [flags]\n"},
		{[]string{"migrate", "--database", "orders"}, "surfin: no database \"orders\"; known: default\n"},
		{[]string{"list", "--lease", "soon"}, "surfin: --lease: lease: \"soon\" is not a duration above zero (such as 30s, 5m)\n"},
		{[]string{"list", "--database-url", "oracle://h/d"}, "surfin: --database-url: databases.default.url: oracle: databases of this kind are not known (known: sqlite:PATH, postgres://USER:PASSWORD@HOST/NAME or mysql://USER:PASSWORD@HOST/NAME)\n"},
		{[]string{"list", "--config", s.path("no-settings")}, "surfin: settings: open DIR/no-settings: no such file or directory\n"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			r := s.run(c.args...)
			require.Equal(t, cli.ExitUsage, r.code)
			require.Equal(t, c.want, r.err)
			require.Empty(t, r.out)
		})
	}
}

func TestAWrongJobFileIsReportedAsAWholeAndNothingIsOpened(t *testing.T) {
	t.Parallel()
	s := newScene(t, "postgres://nobody@127.0.0.1:1/none", map[string]string{"bad.yaml": "job: bad\nflwo: []\nflow:\n- step: one\n  tasklet: nohting\n"})
	for _, command := range []string{"run", "validate"} {
		r := s.run(command, "bad.yaml")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "DIR/bad.yaml:2:1: ")
		require.Contains(t, r.err, "DIR/bad.yaml:5:12: ")
		require.Contains(t, r.err, "5 | tasklet: nohting\n | ^")
		require.Empty(t, r.out)
	}
}

func TestValidateChecksEveryFile(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob, "bad.yaml": "job: 1x\n"})
	r := s.run("validate", "bad.yaml", "load.yaml")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Equal(t, "DIR/load.yaml: ok (job load: load, last)\n", r.out)
	require.Contains(t, r.err, "DIR/bad.yaml:1:6: ")
	require.Equal(t, cli.ExitCompleted, s.run("validate", "load.yaml").code)
	r = s.run("validate", "--expand", "load.yaml", "load.yaml")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Equal(t, 2, strings.Count(r.out, "---\njob: "), r.out)
}

func TestAnUnreachableDatabaseIsOneClearLine(t *testing.T) {
	t.Parallel()
	s := newScene(t, "postgres://me:secret@127.0.0.1:1/orders", map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
	r := s.run("run", "load.yaml")
	require.Equal(t, cli.ExitFailed, r.code)
	lines := strings.Split(strings.TrimSpace(r.err), "\n")
	require.Len(t, lines, 2, r.err)
	require.Equal(t, "INFO postgres me@127.0.0.1:1/orders (from --database-url)", lines[0])
	require.Contains(t, lines[1], "surfin: ")
	require.Contains(t, lines[1], "connection refused")
	require.NotContains(t, r.err, "secret")
}

func TestPostgresWithoutSchemaNamesTheCommandThatMakesIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.EmptyPostgres(t), map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
	r := s.run("run", "load.yaml")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "the repository's schema is missing or outdated")
	require.Contains(t, r.err, "create or update it: surfin migrate --database-url ")

	r = s.run("migrate")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.out, ": migrated\n")
	require.Contains(t, s.run("migrate").out, ": the schema is up to date\n")
	require.Equal(t, cli.ExitCompleted, s.run("run", "load.yaml").code)
}

func TestHelpOfAJobListsItsParameters(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob})
	r := s.run("run", "load.yaml", "--help")
	require.Equal(t, cli.ExitCompleted, r.code)
	require.Contains(t, r.out, `Job load (DIR/load.yaml)

Numbers into a table.

Usage:
 surfin run DIR/load.yaml [NAME=VALUE ...] [flags]

Steps:
 load, last

Parameters:
 name type default allowed description
 ─
 input path numbers.csv what to read
 year int 1995 from 1990 to 2030
 least int 0 (not identifying)

Flags:
 --accept-changes resume the instance although changes of its job file, or of an input file, affect committed work
 --again create a new instance if the one with these parameters is complete
`)
}

func TestHelpNamesCommandsExitCodesAndSettings(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	r := s.run("--help")
	require.Equal(t, cli.ExitCompleted, r.code)
	for _, want := range []string{"run", "next", "validate", "restart", "stop", "abandon", "recover", "purge", "list", "show", "skips", "sql", "migrate", "schema", "describe", "version", "completion",
		" 4 refused: already complete, already running, or not restartable; nothing was run", " 5 a gate failed"} {
		require.Contains(t, r.out, want)
	}
	r = s.run("help", "settings")
	require.Contains(t, r.out, "log.level SURFIN_LOG_LEVEL info debug, info, warn or error")
	require.Contains(t, r.out, "databases.default DATABASE_URL sqlite:surfin.db")
	require.Contains(t, s.run("version").out, "surfin 1.2.3 (go1.")
	require.Contains(t, s.run("completion", "bash").out, "__start_surfin")
}

func TestCompletionKnowsFilesParametersAndComponents(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob})
	require.Contains(t, s.run("__complete", "run", "").out, "yaml\nyml\n:8")
	require.Contains(t, s.run("__complete", "run", "load.yaml", "year=1996", "").out, "input=\twhat to read\nleast=\n:6")
	require.Contains(t, s.run("__complete", "describe", "").out, "csv\t")
	require.Contains(t, s.run("__complete", "list", "--status", "").out, "FAILED\n")
}
