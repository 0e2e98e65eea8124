// Package cli is the command line of a Surfin application. Results go to
// standard output, logs and errors to standard error. [Main] documents the exit
// codes. An [App] brings the registry and opens a [Session].
//
// It imports operator, jobtest, draft, runtime (workers and tasks), internal/api,
// settings, internal/jobfile, core and tx, and none of job, chunk, step and
// repository: the rules of running are the service's.
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
)

// Main runs one command line and returns the exit code (see ExitCompleted). A
// component that does not return before the lease is over ends the process,
// with ExitLease. During run and restart, SIGINT and SIGTERM request a stop, a
// second one cancels, and a third one kills (rule L4). The end of ctx cancels.
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
	root := newRoot(p)
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

func newRoot(env *environment) *cobra.Command {
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
	root.SetVersionTemplate(strings.ReplaceAll(versionText(env.app), "{{", ""))
	env.addGlobalFlags(root)
	root.AddCommand(commands(env)...)
	return root
}

func commands(env *environment) []*cobra.Command {
	run, dryRun, operate, show, times := runCommands{env}, dryRunCommand{env}, operateCommands{env}, showCommands{env}, timeCommands{env}
	definitions, tasks, server, files := definitionsCommands{env}, taskCommands{env}, serverCommands{env}, fileCommands{env}
	return []*cobra.Command{
		dryRun.runDryRun(run.runCommand()), run.nextCommand(), run.backfillCommand(), dryRun.restartDryRun(run.restartCommand()),
		operate.stopCommand(), operate.abandonCommand(), operate.bulkCommand(), operate.recoverCommand(), operate.purgeCommand(),
		show.listCommand(), show.showCommand(), show.explainCommand(), times.partsCommand(), times.timelineCommand(), show.compareCommand(), show.reportCommand(), show.daysCommand(),
		overviewCommands{env}.overviewCommand(), overviewCommands{env}.summaryCommand(), logCommands{env}.command(), show.topCommand(), show.auditCommand(), skipsCommands{env}.skipsCommand(),
		definitions.registerCommand(), definitions.unregisterCommand(), definitions.definitionsCommand(), definitions.schedulesCommand(),
		tasks.tasksCommand(), tasks.eventsCommand(), tasks.settingsCommand(),
		server.workerCommand(), server.serveCommand(), server.sqlCommand(), server.migrateCommand(),
		files.validateCommand(), files.testCommand(), files.inferCommand(), files.initCommand(), files.copyCommand(), files.buildCommand(), placeCommands{env}.command(),
		files.schemaCommand(), files.describeCommand(), files.versionCommand(), files.manCommand(),
	}
}
