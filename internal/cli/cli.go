// Package cli is the command line of a Surfin application: run, next, restart, stop, abandon,
// recover, purge, worker and serve; register, definitions and schedules; list, explain, top, show
// and skips; tasks; infer, init, copy and test; validate, sql, migrate, schema, describe, version,
// man and completion.
//
// The result of a command goes to standard output, logs and errors to standard error. [Main]
// documents the exit codes. The package assembles nothing itself: an [App] brings the registry, and
// a function that opens a [Session] to run jobs.
//
// It imports operator, jobtest, draft, runtime (workers and tasks), internal/api, settings,
// internal/jobfile, core and tx, and none of job, chunk, step and repository: the rules of running
// are the service's.
package cli

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Settings are the parameters of App.Open: package settings documents them.
type Settings = settings.Settings

// App is the application that the command line runs.
type App struct {
	// Name is the program's name in its help and hints.
	Name, Version string
	// Registry holds descriptors only: validate, list components, describe and
	// schema open no database.
	Registry *registry.Registry
	// Files are jobs embedded in the program, by their names, which can be used in place of files
	// on the command line; may be nil.
	Files map[string]*jobfile.File
	// Handlers returns the types of tasks that the program executes with these settings, for
	// validate; if nil, they are unknown.
	Handlers func(s Settings) (jobfile.HandlerTypes, error)
	// Open builds a session that runs jobs. The repository's schema need not exist yet.
	Open func(ctx context.Context, s Settings, observer core.Observer) (*Session, error)
}

// Session runs jobs, until Close.
type Session struct {
	// Service runs and operates jobs.
	Service *operator.Service
	// Tasks submits and operates tasks.
	Tasks *runtime.TaskService
	// Provider has the databases, for sql.
	Provider tx.Provider
	// Observer is all observers of the application; may be nil.
	Observer core.Observer
	// Work executes tasks, and runs partitions of other processes' jobs, until stop is closed.
	Work  func(ctx context.Context, stop <-chan struct{}, o runtime.Options) error
	Close func(ctx context.Context) error
}

// Main runs one command line, given without the program's name, and returns the exit code: 0
// completed, 1 failed, 2 usage or invalid definition, 3 stopped, 4 refused because of the state of
// the job instance, 5 a gate failed (ExitCompleted and following have the details). A component
// that does not return although the lease is nearly over ends the whole process, with ExitLease.
//
// During run and restart, SIGINT and SIGTERM request a stop, a second one cancels, and a third one
// kills (rule L4). The end of ctx cancels like the second one.
func Main(ctx context.Context, app App, args []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	p := &environment{
		app: app, stdin: stdin, environ: os.Environ(), now: time.Now,
		out: colorprofile.NewWriter(stdout, os.Environ()),
		err: newStderr(stderr, os.Environ()), json: wantsJSON(args, os.Environ()),
	}
	defer func() {
		if v := recover(); v != nil {
			exitCode = p.reportPanic(v, debug.Stack())
		}
	}()
	dir, err := os.Getwd()
	if err != nil {
		return p.report(err)
	}
	p.dir = dir
	root := p.rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(stdin)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err = root.ExecuteContext(ctx)
	if err != nil && !p.started {
		err = usage(err) // cobra refused the command line before any command ran
	}
	return p.report(err)
}

// The families of commands. Their commands share the environment.
type (
	// runCommands launch jobs and follow them: run, next and restart.
	runCommands struct{ env *environment }
	// dryRunCommand is run --dry-run.
	dryRunCommand struct{ env *environment }
	// operateCommands change executions and the history: stop, abandon, recover and purge.
	operateCommands struct{ env *environment }
	// showCommands read the history: list, show, explain and top.
	showCommands struct{ env *environment }
	// skipsCommands handle skipped items: skips list, show, export and redrive.
	skipsCommands struct{ env *environment }
	// serverCommands work in databases: worker, migrate and sql.
	serverCommands struct{ env *environment }
	// fileCommands need no database: validate, describe, schema, version and the settings.
	fileCommands struct{ env *environment }
)

func (env *environment) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   env.app.Name,
		Short: "Run batch jobs that are written as YAML files",
		Long: strings.TrimSpace(`
Runs batch jobs that are written as YAML files: restartable, transactional, with
their history in a database.

Exit codes:
` + exitCodeHelp()),
		SilenceErrors: true, SilenceUsage: true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return env.start(cmd) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(err, "help: "+cmd.CommandPath()+" --help")
	})
	root.Version = env.app.Version + " " // cobra adds --version
	root.SetVersionTemplate(strings.ReplaceAll(env.versionText(), "{{", ""))
	env.addGlobalFlags(root)
	root.AddCommand(
		dryRunCommand{env}.runDryRun(runCommands{env}.runCommand()), fileCommands{env}.validateCommand(), fileCommands{env}.testCommand(), fileCommands{env}.inferCommand(), fileCommands{env}.initCommand(), fileCommands{env}.copyCommand(), runCommands{env}.nextCommand(), runCommands{env}.backfillCommand(), dryRunCommand{env}.restartDryRun(runCommands{env}.restartCommand()), operateCommands{env}.stopCommand(), operateCommands{env}.abandonCommand(),
		operateCommands{env}.recoverCommand(), serverCommands{env}.workerCommand(), serverCommands{env}.serveCommand(), operateCommands{env}.purgeCommand(), showCommands{env}.listCommand(), showCommands{env}.showCommand(), showCommands{env}.explainCommand(), showCommands{env}.topCommand(), skipsCommands{env}.skipsCommand(), taskCommands{env}.tasksCommand(),
		definitionsCommands{env}.registerCommand(), definitionsCommands{env}.unregisterCommand(), definitionsCommands{env}.definitionsCommand(), definitionsCommands{env}.schedulesCommand(),
		serverCommands{env}.sqlCommand(), serverCommands{env}.migrateCommand(), fileCommands{env}.schemaCommand(), fileCommands{env}.describeCommand(), fileCommands{env}.versionCommand(), fileCommands{env}.manCommand(),
		taskCommands{env}.eventsCommand(), showCommands{env}.auditCommand(), taskCommands{env}.settingsCommand(),
	)
	return root
}
