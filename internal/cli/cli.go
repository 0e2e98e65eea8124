// Package cli is the command line of a Surfin application: run, next, restart,
// stop, abandon, recover, purge, worker and serve; register, definitions and schedules; list, explain, top, show and skips; tasks; infer, init, copy and test; validate, sql, migrate,
// schema, describe, version, man and completion.
//
// The result of a command goes to standard output, logs and errors to standard
// error. [Main] documents the exit codes. The package assembles nothing itself:
// an [App] brings the registry, and a function that opens what runs jobs.
//
// It imports operator, jobtest, draft, runtime (workers and tasks), internal/api, settings, internal/jobfile, core and tx, and
// none of job, chunk, step and repository: the rules of running are the service's.
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
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Settings are what App.Open is told: package settings documents them.
type Settings = settings.Settings

// App is the application behind the command line.
type App struct {
	// Name is the program's name, as its help and its hints write it.
	Name, Version string
	// Registry holds descriptors only: validate, list components, describe and
	// schema open no database.
	Registry *registry.Registry
	// Files are jobs that the program has in it, by their names, which stand for files on
	// the command line; nil: none.
	Files map[string]*jobfile.File
	// Handlers returns the types of tasks that the program executes with these settings, for
	// validate; nil: they are not known.
	Handlers func(s Settings) (jobfile.HandlerTypes, error)
	// Open builds what runs jobs. The repository's schema need not exist yet.
	Open func(ctx context.Context, s Settings, observer core.Observer) (*Session, error)
}

// Session is what runs jobs, until Close.
type Session struct {
	// Service is the one place where jobs are run and operated.
	Service *operator.Service
	// Tasks is the one place where tasks are submitted and operated.
	Tasks *runtime.TaskService
	// Provider has the databases, for sql.
	Provider tx.Provider
	// Observer is all observers of the application; nil: there are none.
	Observer core.Observer
	// Work executes tasks, and runs partitions of other processes' jobs, until stop is closed.
	Work  func(ctx context.Context, stop <-chan struct{}, o runtime.Options) error
	Close func(ctx context.Context) error
}

// Main runs one command line, given without the program's name, and returns the
// exit code: 0 completed, 1 failed, 2 usage or invalid definition, 3 stopped, 4
// refused because of the state of the job instance, 5 a gate failed (ExitCompleted
// and following have the details). A component that does not return though the lease is
// nearly over ends the whole process, with ExitLease.
//
// While run and restart work, SIGINT and SIGTERM ask for a stop, a second one
// cancels, and a third one kills (rule L4). ctx cancels as the second one does.
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
	// skipsCommands are about skipped items: skips list, show, export and redrive.
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
