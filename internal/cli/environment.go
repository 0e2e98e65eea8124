package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type environment struct {
	app     App
	stdin   io.Reader
	out     io.Writer
	err     *stderr
	environ []string
	dir     string // working directory
	now     func() time.Time

	settings Settings
	flags    []settings.Flag // given on the command line
	config   string          // --config
	as       string          // of the flag --as
	reason   string          // of the flag --reason
	debug    bool
	json     bool   // the log is JSON
	format   string // table or json
	log      *slog.Logger
	started  bool // a command runs: errors are no longer usage errors
	// repeat is a command line that, given again, restarts the work; nil: by
	// number.
	repeat []string
}

// Commands that open a database call it first.
func (env *environment) configure() error {
	s, err := env.loadSettings()
	if err != nil {
		return usage(err)
	}
	level := s.Log.Level
	if env.debug {
		level = "debug"
	}
	env.settings = s
	env.err.hide(s.Secrets)
	env.json = s.Log.Format == formatJSON
	env.log = newLogger(env.err, level, s.Log.Format)
	if env.app.Log != nil {
		env.app.Log(runlog.Handler(env.log.Handler()))
	}
	for _, w := range s.Warnings {
		env.log.Warn(w)
	}
	return nil
}

func (env *environment) loadSettings() (Settings, error) {
	return settings.Load(settings.Source{Dir: env.dir, File: env.config, Environ: env.environ, Flags: env.flags})
}

func (env *environment) startProgress() *mpb.Progress {
	if env.json {
		return nil
	}
	return env.err.startProgress()
}

// withSession prepares the repository's schema.
func (env *environment) withSession(ctx context.Context, observer core.Observer, f func(s *Session) error) error {
	return env.withRawSession(ctx, observer, func(s *Session) error {
		if err := s.Service.Prepare(ctx); err != nil { // rule R4
			return env.refusal(err)
		}
		return f(s)
	})
}

func (env *environment) withRawSession(ctx context.Context, observer core.Observer, f func(s *Session) error) (err error) {
	var s *Session
	err = lease.Opening.Record(ctx, func(ctx context.Context) (err error) {
		s, err = env.app.Open(ctx, env.settings, core.Observers(observer, core.ObserverFunc(env.endLate)))
		return err
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", env.databaseText(env.settings.Repository.Database), err)
	}
	defer func() {
		if closing := s.Close(context.WithoutCancel(ctx)); closing != nil && err == nil {
			err = fmt.Errorf("close the databases: %w", closing)
		}
	}()
	return f(s)
}

// A goroutine cannot be killed, and another process may begin the same work
// (rule L9).
func (env *environment) endLate(_ context.Context, e core.Event) {
	late, is := e.(core.ComponentLate)
	if !is {
		return
	}
	what := fmt.Sprintf("job %s, execution %d", late.JobName, late.Execution)
	if late.Step != "" {
		what += ", step " + late.Step
	}
	env.err.endProgress()
	if late.Task != 0 {
		os.Exit(env.report(&exitError{
			code:  ExitLease,
			err:   fmt.Errorf("task %d of type %s: its handler did not return in time, so this process ends: %w", late.Task, late.TaskType, late.Err),
			hints: wording.HintLines([]wording.Hint{{Label: "details", Text: env.command("tasks", "show", strconv.FormatInt(late.Task, 10))}}),
		}))
	}
	os.Exit(env.report(&exitError{
		code: ExitLease,
		err:  fmt.Errorf("%s did not return before its lease expired, so this process ends: %w", what, late.Err),
		hints: wording.HintLines([]wording.Hint{
			{Label: "restart it", Text: env.command("restart", wording.ID(late.Execution))},
			{Label: "details", Text: env.command("show", wording.ID(late.Execution))},
		}),
	}))
}

// A command that only reads must not create a missing SQLite file.
func (env *environment) isAbsent(name string) bool {
	path, ok := strings.CutPrefix(env.settings.Databases[name].URL, "sqlite:")
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (env *environment) databaseText(name string) string {
	d, ok := env.settings.Databases[name]
	if !ok {
		return "database " + name
	}
	if name == tx.Default {
		return d.String()
	}
	return name + ": " + d.String()
}

func (env *environment) announceDatabase(ctx context.Context) {
	name := env.settings.Repository.Database
	how := "DATABASE_URL to change"
	if name != tx.Default {
		how = "repository.database"
	} else if origin := env.settings.Databases[name].Origin; origin != "" {
		how = "from " + origin
	}
	env.log.InfoContext(ctx, env.databaseText(name)+" ("+how+")")
}

func (env *environment) warnUnmasked(ctx context.Context) {
	for _, text := range env.settings.Secrets.Unmasked() {
		env.log.WarnContext(ctx, text)
	}
}

func (env *environment) checkDatabase(name string) error {
	if _, ok := env.settings.Databases[name]; !ok {
		return usagef("no database %q; known: %s", name, humanize.Join(env.settings.Names()))
	}
	return nil
}
