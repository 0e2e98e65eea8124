package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func noActs() map[string]string {
	return map[string]string{
		"audit list": "reads", "build": "writes a program", "places check": "tries a place", "completion bash": "prints", "completion fish": "prints", "completion powershell": "prints", "completion zsh": "prints",
		"definitions list": "reads", "describe": "prints", "events list": "reads", "compare": "reads", "days": "reads", "explain": "reads", "help": "prints", "infer": "reads a file", "init": "writes a file", "init app": "writes files",
		"list": "reads", "list components": "reads", "list instances": "reads", "list jobs": "reads", "log": "reads", "man": "prints", "overview": "reads", "report": "writes a file", "summary": "reads", "schedules": "reads", "schema": "prints",
		"serve": "acts in the name of its clients", "settings list": "reads", "parts": "reads", "show": "reads", "timeline": "reads", "skips export": "writes a file", "skips list": "reads", "skips show": "reads",
		"sql": "the statement is of data", "tasks list": "reads", "tasks show": "reads", "tasks status": "reads", "tasks wait": "reads", "tasks log": "reads", "tasks types": "reads", "tasks workers": "reads",
		"test": "has a database of its own", "top": "reads", "validate": "reads files", "version": "prints", "worker": "acts for tasks",
	}
}

type acting struct {
	args []string
	verb string
	code int
}

const skipsJob = `job: skips
flow:
- step: load
  chunk: {skip: {limit: 5}, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: {name: numbers, create: true}}}
`

func (s *audited) acts() map[string][]acting {
	return map[string][]acting{
		"migrate":             {{[]string{"migrate"}, ports.VerbMigrate, 0}},
		"run":                 {{[]string{"run", "skips.yaml"}, ports.VerbRun, 0}, {[]string{"run", "fails.yaml"}, ports.VerbRun, 1}},
		"next":                {{[]string{"next", "daily.yaml"}, ports.VerbRun, 0}},
		"backfill":            {{[]string{"backfill", "daily.yaml", "day=2026-01-01..2026-01-01"}, ports.VerbRun, 0}, {[]string{"backfill", "daily.yaml", "day=2026-01-01..2026-01-02", "--as-tasks"}, ports.VerbSubmit, 0}},
		"copy":                {{[]string{"copy", "in.csv", "table:copied", "--type", "id=string"}, ports.VerbRun, 0}},
		"restart":             {{[]string{"restart", "EXEC:fails"}, ports.VerbRestart, 1}},
		"skips redrive":       {{[]string{"skips", "redrive", "EXEC:skips"}, ports.VerbRedrive, -1}},
		"stop":                {{[]string{"stop", "EXEC:held"}, ports.VerbStop, 0}},
		"abandon":             {{[]string{"abandon", "EXEC:fails"}, ports.VerbAbandon, 0}},
		"recover":             {{[]string{"recover"}, ports.VerbRecover, 0}},
		"register":            {{[]string{"register", "daily.yaml"}, ports.VerbRegister, 0}},
		"definitions disable": {{[]string{"definitions", "disable", "daily"}, ports.VerbDisable, 0}},
		"definitions enable":  {{[]string{"definitions", "enable", "daily"}, ports.VerbEnable, 0}},
		"definitions run":     {{[]string{"definitions", "run", "daily"}, ports.VerbRun, 0}},
		"unregister":          {{[]string{"unregister", "daily"}, ports.VerbUnregister, 0}},
		"settings set":        {{[]string{"settings", "set", "audit_retention_days", "400"}, ports.VerbSet, 0}},
		"tasks submit":        {{[]string{"tasks", "submit", "tasks.json"}, ports.VerbSubmit, 0}, {[]string{"tasks", "submit", "tasks.json"}, ports.VerbSubmit, 0}},
		"tasks cancel":        {{[]string{"tasks", "cancel", "1"}, ports.VerbCancel, 0}, {[]string{"tasks", "cancel", "--group", "2"}, ports.VerbCancelGroup, 0}},
		"tasks rerun":         {{[]string{"tasks", "rerun", "1"}, ports.VerbRerun, 0}},
		"events offer":        {{[]string{"events", "offer", "1"}, ports.VerbOffer, 0}},
		"bulk":                {{[]string{"bulk", "restart", "EXEC:fails"}, ports.VerbSubmit, 0}},
		"purge":               {{[]string{"purge", "--older-than", "0s", "--yes"}, ports.VerbPurge, 0}},
	}
}

func order() []string {
	return []string{
		"migrate", "run", "next", "backfill", "copy", "restart", "skips redrive", "stop", "abandon", "recover", "register", "definitions disable", "definitions enable",
		"settings set", "tasks submit", "tasks cancel", "tasks rerun", "events offer", "definitions run", "unregister", "bulk", "purge",
	}
}

type audited struct {
	t   *testing.T
	app command.App
	db  tx.Database
	on  *batch.App
}

func (s *audited) surfin(args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = command.Main(s.t.Context(), s.app, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func (s *audited) leaves(path ...string) (list []string) {
	s.t.Helper()
	_, out, _ := s.surfin(append(path, "--help")...)
	_, rest, _ := strings.Cut(out, "Available Commands:\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	names := regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(rest, -1)
	if len(path) > 0 && (len(names) == 0 || path[0] == "list" || path[0] == "init") {
		list = append(list, strings.Join(path, " "))
	}
	for _, name := range names {
		list = append(list, s.leaves(append(path[:len(path):len(path)], name[1])...)...)
	}
	return list
}

func (s *audited) newest() operator.ActView {
	s.t.Helper()
	code, out, errs := s.surfin("audit", "list", "--limit", "1", "--format", "json")
	require.Zero(s.t, code, errs)
	var page operator.ActPage
	require.NoError(s.t, json.Unmarshal([]byte(out), &page), out)
	if len(page.Acts) == 0 {
		return operator.ActView{}
	}
	return page.Acts[0]
}

// prepare makes what the act needs, and replaces EXEC:JOB by the newest execution of a job.
func (s *audited) prepare(path string, args []string) []string {
	s.t.Helper()
	launch := func(lease time.Duration) {
		_, err := s.on.Repository.Launch(s.t.Context(), ports.LaunchRequest{JobName: "held", Owner: core.Owner{Host: "elsewhere", PID: 1}, Lease: lease})
		require.NoError(s.t, err)
	}
	switch path {
	case "stop":
		launch(time.Hour)
	case "recover":
		_, err := s.db.Conn().ExecContext(s.t.Context(), "UPDATE surfin_job_execution SET lease_until = started_at WHERE status = 'STOPPING'")
		require.NoError(s.t, err)
		_, err = s.db.Conn().ExecContext(s.t.Context(), "UPDATE surfin_job_execution SET lease_until = created_at WHERE active = 1")
		require.NoError(s.t, err)
	case "events offer":
		now := map[tx.Dialect]string{tx.Postgres: "clock_timestamp()", tx.SQLite: "1"}[s.db.Dialect()]
		_, err := s.db.Conn().ExecContext(s.t.Context(), "INSERT INTO surfin_event (topic, subject, dedupe_key, offer_after, created_at, dead_at) VALUES ('paid', 1, 'k', 0, "+now+", "+now+")")
		require.NoError(s.t, err)
	}
	made := append([]string{}, args...)
	for i, arg := range made {
		if name, is := strings.CutPrefix(arg, "EXEC:"); is {
			page, err := s.on.List(s.t.Context(), operator.ListRequest{Job: name, Limit: 1})
			require.NoError(s.t, err)
			made[i] = strconv.FormatInt(int64(page.Executions[0].ID), 10)
		}
	}
	return made
}

// Rule OP4. A new command must be in one of the two lists.
func TestEveryActOfTheCommandIsAudited(t *testing.T) {
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		t.Setenv("DATABASE_URL", url)
		t.Chdir(t.TempDir())
		for name, text := range map[string]string{
			"skips.yaml": skipsJob, "in.csv": "id\n1\nx\n", "fails.yaml": "job: fails\nflow:\n- {step: a, tasklet: {sql: insert into nowhere values (1)}}\n",
			"daily.yaml": "job: daily\nincrementer: day\nparameters: {day: {type: date, default: 2026-11-20}}\nschedule: {cron: '0 2 * * *', timezone: UTC}\nflow:\n- {step: a, tasklet: {sql: select 1}}\n",
			"tasks.json": `{"tasks": [{"type": "square"}]}`,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(".", name), []byte(text), 0o600))
		}
		app, err := cli.NewCommand(batch.Handler("square", func() square { return square{} }))
		require.NoError(t, err)
		s := &audited{t: t, app: app}
		var provider tx.Provider
		set := batch.Settings{Databases: map[string]settings.Database{tx.Default: {URL: url}}, Repository: settings.Repository{Database: tx.Default}, Lease: time.Minute, Heartbeat: time.Second}
		s.on, err = batch.New(t.Context(), set, batch.Log(nil), fx.Populate(&provider))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.on.Close(context.WithoutCancel(t.Context()))) }()
		s.db, err = provider.Database("")
		require.NoError(t, err)

		acts := s.acts()
		for _, leaf := range s.leaves() {
			_, reads := noActs()[leaf]
			require.True(t, reads != (acts[leaf] != nil), "%q is neither an act that is audited nor a command without one", leaf)
		}
		require.Len(t, order(), len(acts))
		before := int64(0)
		for _, path := range order() {
			for _, act := range acts[path] {
				args := append(s.prepare(path, act.args), "--as", "ada")
				code, out, errs := s.surfin(args...)
				if act.code >= 0 {
					require.Equal(t, act.code, code, "%v\n%s%s", args, out, errs)
				}
				got := s.newest()
				require.Equal(t, act.verb, got.Act, "%v\n%s%s", args, out, errs)
				require.Regexp(t, `^ada \(.+@.+\)$`, got.Actor, args)
				require.NotEqual(t, before, got.ID, args)
				before = got.ID
			}
		}
		code, out, errs := s.surfin("audit", "list", "--actor", "ada", "--job", "fails", "--format", "csv")
		require.Zero(t, code, errs)
		require.Equal(t, 1+5, strings.Count(out, "\n"), "run, restart, abandon and two purges: the job is known when its executions are gone\n%s", out)
	})
}
