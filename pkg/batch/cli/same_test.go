package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// pair is one folder with two databases: what is done on one from Go is done on the
// other by the command.
type pair struct {
	t    *testing.T
	file string
	app  *batch.App
	urls [2]string // of Go, of the command
}

func each(t *testing.T, f func(p *pair)) {
	t.Helper()
	for name, open := range map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pair{t: t, file: filepath.Join(t.TempDir(), "job.yaml"), urls: [2]string{open(t), open(t)}}
			app, err := batch.New(t.Context(), p.settings(p.urls[0]), touchy())
			require.NoError(t, err)
			p.app = app
			t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
			f(p)
		})
	}
}

func touchy() fx.Option {
	type config struct {
		Broken string `key:"broken"`
	}
	return batch.Tasklet("touchy", func(c config) batch.TaskletFunc {
		return func(context.Context, *batch.StepContribution) error {
			if _, err := os.Stat(c.Broken); err == nil {
				return errors.New("broken")
			}
			return nil
		}
	}, batch.NoTransaction())
}

func (p *pair) settings(url string) batch.Settings {
	p.t.Helper()
	s, err := settings.Load(settings.Source{Dir: p.t.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true"}})
	require.NoError(p.t, err)
	return s
}

func (p *pair) write(text string) {
	p.t.Helper()
	text = strings.ReplaceAll(text, "BROKEN", p.broken())
	require.NoError(p.t, os.WriteFile(p.file, []byte(text), 0o600))
}

func (p *pair) broken() string { return filepath.Join(filepath.Dir(p.file), "broken") }

func (p *pair) fails(yes bool) {
	p.t.Helper()
	if yes {
		require.NoError(p.t, os.WriteFile(p.broken(), nil, 0o600))
		return
	}
	require.NoError(p.t, os.Remove(p.broken()))
}

func (p *pair) run(req batch.RunRequest, args ...string) {
	p.t.Helper()
	req.File = p.file
	_, err := p.app.Run(p.t.Context(), req)
	p.command(err, append([]string{"run", p.file}, args...))
	p.same()
}

func (p *pair) restart(req batch.RestartRequest, args ...string) {
	p.t.Helper()
	running, err := p.app.Restart(p.t.Context(), req)
	if err == nil {
		_, err = running.Wait()
	}
	p.command(err, append([]string{"restart"}, args...))
	p.same()
}

func (p *pair) command(refused error, args []string) {
	p.t.Helper()
	app, err := cli.NewCommand(touchy())
	require.NoError(p.t, err)
	var out, log bytes.Buffer
	code := command.Main(p.t.Context(), app, append(args, "--database-url", p.urls[1], "--auto-migrate", "true"), strings.NewReader(""), &out, &log)
	require.Equal(p.t, refused == nil, code <= command.ExitFailed, "refused: %v\n%s", refused, log.String())
}

func (p *pair) same() {
	p.t.Helper()
	other, err := batch.New(p.t.Context(), p.settings(p.urls[1]))
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, other.Close(context.WithoutCancel(p.t.Context()))) }()
	require.Equal(p.t, history(p.t, p.app), history(p.t, other))
}

type seen struct {
	id       core.JobExecutionID
	instance core.JobInstanceID
	status   core.Status
	attempt  int
	params   string
	steps    string
}

func history(t *testing.T, app *batch.App) []seen {
	t.Helper()
	page, err := app.List(t.Context(), operator.ListRequest{})
	require.NoError(t, err)
	var all []seen
	for _, e := range page.Executions {
		var params, steps []string
		for _, q := range e.Params.All() {
			text, err := q.Canonical()
			require.NoError(t, err)
			params = append(params, q.Name+"="+text)
		}
		ran, err := app.Repository.Steps(t.Context(), e.ID)
		require.NoError(t, err)
		for _, s := range ran {
			steps = append(steps, s.Name+" "+string(s.Status))
		}
		all = append(all, seen{e.ID, e.InstanceID, e.Status, e.Attempt, strings.Join(params, " "), strings.Join(steps, ", ")})
	}
	return all
}

const nightly = "job: nightly\nparameters: {run: {type: int, default: 1}MORE}\nincrementer: run\nflow:\n" +
	"- {step: first, tasklet: {sql: select 1}}\n- {step: second, tasklet: {touchy: {broken: BROKEN}}}\n"

func TestARunWithAnIncrementerIsTheSameFromGoAndFromTheCommand(t *testing.T) {
	t.Parallel()
	each(t, func(p *pair) {
		p.write(strings.Replace(nightly, "MORE", "", 1))
		p.run(batch.RunRequest{})
		p.run(batch.RunRequest{})
		p.fails(true)
		p.run(batch.RunRequest{})
		p.fails(false)
		p.write(strings.Replace(nightly, "MORE", ", note: {type: string, default: added, identifying: false}", 1))
		p.run(batch.RunRequest{})
		p.run(batch.RunRequest{Next: true}, "--next")
		require.Equal(p.t, []seen{
			{5, 5, core.StatusCompleted, 1, "note=added run=4", "first COMPLETED, second COMPLETED"},
			{4, 3, core.StatusCompleted, 2, "note=added run=3", "second COMPLETED"},
			{3, 3, core.StatusFailed, 1, "run=3", "first COMPLETED, second FAILED"},
			{2, 2, core.StatusCompleted, 1, "run=2", "first COMPLETED, second COMPLETED"},
			{1, 1, core.StatusCompleted, 1, "run=1", "first COMPLETED, second COMPLETED"},
		}, history(p.t, p.app))
	})
}

func TestTheNewestInstanceIsTheOneMadeLast(t *testing.T) {
	t.Parallel()
	each(t, func(p *pair) {
		p.write(strings.Replace(nightly, "MORE", "", 1))
		p.fails(true)
		p.run(batch.RunRequest{})
		p.run(batch.RunRequest{Next: true}, "--next")
		p.fails(false)
		p.run(batch.RunRequest{})
		p.restart(batch.RestartRequest{Execution: 1}, "1")
		p.run(batch.RunRequest{})
		require.Equal(p.t, "run=3", history(p.t, p.app)[0].params, "the instance of run=1 was restarted since")
	})
}

const plain = "job: plain\nparameters: {day: {type: date}MORE}\nflow:\n" +
	"- {step: first, tasklet: {sql: select 1}}\n- {step: second, tasklet: {touchy: {broken: BROKEN}}}\n"

func TestARepetitionIsTheSameFromGoAndFromTheCommand(t *testing.T) {
	t.Parallel()
	each(t, func(p *pair) {
		p.write(strings.Replace(plain, "MORE", "", 1))
		day := map[string]string{"day": "2026-11-20"}
		again := batch.RunRequest{Params: day, Again: true}
		p.run(again, "day=2026-11-20", "--again")
		p.run(batch.RunRequest{Params: day}, "day=2026-11-20") // refused: it is complete
		p.fails(true)
		p.run(again, "day=2026-11-20", "--again")
		p.fails(false)
		p.run(again, "day=2026-11-20", "--again")
		p.run(again, "day=2026-11-20", "--again")
		require.Equal(p.t, []string{"day=2026-11-20 run.again=2", "day=2026-11-20 run.again=1", "day=2026-11-20 run.again=1", "day=2026-11-20"},
			[]string{history(p.t, p.app)[0].params, history(p.t, p.app)[1].params, history(p.t, p.app)[2].params, history(p.t, p.app)[3].params})
	})
}

func TestARestartIsTheSameFromGoAndFromTheCommand(t *testing.T) {
	t.Parallel()
	each(t, func(p *pair) {
		p.write(strings.Replace(plain, "MORE", "", 1))
		p.fails(true)
		p.run(batch.RunRequest{Params: map[string]string{"day": "2026-11-20"}}, "day=2026-11-20")
		p.write(strings.Replace(plain, "MORE", ", note: {type: string, default: added, identifying: false}", 1))
		p.restart(batch.RestartRequest{Execution: 1}, "1")
		p.restart(batch.RestartRequest{Execution: 1}, "1") // refused: there is a newer one
		p.fails(false)
		p.restart(batch.RestartRequest{Execution: 2, FromStart: true}, "2", "--from-start")
		require.Equal(p.t, []seen{
			{3, 1, core.StatusCompleted, 3, "day=2026-11-20 note=added", "first COMPLETED, second COMPLETED"},
			{2, 1, core.StatusFailed, 2, "day=2026-11-20 note=added", "second FAILED"},
			{1, 1, core.StatusFailed, 1, "day=2026-11-20", "first COMPLETED, second FAILED"},
		}, history(p.t, p.app))
	})
}

const load = "job: load\nflow:\n- step: copy\n  chunk: {size: 1, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: {name: numbers, create: true}}}\n"

func TestAcceptedChangesAreTheSameFromGoAndFromTheCommand(t *testing.T) {
	t.Parallel()
	each(t, func(p *pair) {
		p.write(load)
		input := filepath.Join(filepath.Dir(p.file), "in.csv")
		require.NoError(p.t, os.WriteFile(input, []byte("id\n1\nbad\n"), 0o600))
		p.run(batch.RunRequest{})
		require.NoError(p.t, os.WriteFile(input, []byte("id\n1\n22\n"), 0o600))
		p.restart(batch.RestartRequest{Execution: 1}, "1")
		p.restart(batch.RestartRequest{Execution: 2, AcceptChanges: true}, "2", "--accept-changes")
		var statuses []core.Status
		for _, e := range history(p.t, p.app) {
			statuses = append(statuses, e.status)
		}
		require.Equal(p.t, []core.Status{core.StatusCompleted, core.StatusFailed, core.StatusFailed}, statuses)
	})
}
