// Package cli is the command line of a Surfin application: run, next, restart,
// stop, abandon, recover, purge and worker; list, explain, top, show and skips; validate, sql, migrate,
// schema, describe, version and completion.
//
// The result of a command goes to standard output, logs and errors to standard
// error. [Main] documents the exit codes. The package assembles nothing itself:
// an [App] brings the registry, and a function that opens what runs jobs.
//
// It imports operator, runtime (the worker), settings, adaptor/jobfile, core and tx, and
// none of job, chunk, step and repository: the rules of running are the service's.
package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/runtime"
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
	// Open builds what runs jobs. The repository's schema need not exist yet.
	Open func(ctx context.Context, s Settings, observer core.Observer) (*Session, error)
}

// Session is what runs jobs, until Close.
type Session struct {
	// Service is the one place where jobs are run and operated.
	Service *operator.Service
	// Provider has the databases, for sql.
	Provider tx.Provider
	// Work runs partitions of other processes' jobs until stop is closed.
	Work  func(ctx context.Context, stop <-chan struct{}, o runtime.Options) error
	Close func(ctx context.Context) error
}

// Main runs one command line, given without the program's name, and returns the
// exit code: 0 completed, 1 failed, 2 usage or invalid definition, 3 stopped, 4
// refused because of the state of the job instance, 5 a gate failed (ExitCompleted
// and following have the details).
//
// While run and restart work, SIGINT and SIGTERM ask for a stop, a second one
// cancels, and a third one kills (rule L4). ctx cancels as the second one does.
func Main(ctx context.Context, app App, args []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	p := &program{
		app: app, stdin: stdin, environ: os.Environ(), now: time.Now,
		out: colorprofile.NewWriter(stdout, os.Environ()),
		err: newScreen(stderr, os.Environ()),
	}
	defer func() {
		if v := recover(); v != nil {
			exitCode = p.crashed(v, debug.Stack())
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

// program is one invocation of the command line.
type program struct {
	app     App
	stdin   io.Reader
	out     io.Writer
	err     *screen
	environ []string
	dir     string // working directory
	now     func() time.Time

	settings Settings
	flags    []settings.Flag // of the settings, as given on the command line
	config   string          // --config
	debug    bool
	format   string // table or json
	log      *slog.Logger
	started  bool // a command runs: errors are no longer about the usage
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   p.app.Name,
		Short: "Run batch jobs that are written as YAML files",
		Long: strings.TrimSpace(`
Runs batch jobs that are written as YAML files: restartable, transactional, with
their history in a database.

Exit codes:
` + exitCodeHelp()),
		SilenceErrors: true, SilenceUsage: true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return p.start(cmd) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(err, "help: "+cmd.CommandPath()+" --help")
	})
	p.addGlobalFlags(root)
	root.AddCommand(
		p.withDryRun(p.runCommand()), p.validateCommand(), p.nextCommand(), p.restartCommand(), p.stopCommand(), p.abandonCommand(),
		p.recoverCommand(), p.workerCommand(), p.purgeCommand(), p.listCommand(), p.showCommand(), p.explainCommand(), p.topCommand(), p.skipsCommand(),
		p.sqlCommand(), p.migrateCommand(), p.schemaCommand(), p.describeCommand(), p.versionCommand(),
		p.settingsTopic(),
	)
	return root
}
