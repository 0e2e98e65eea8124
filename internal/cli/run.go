package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type runCommands struct{ env *environment }

func (c runCommands) runCommand() *cobra.Command {
	var req operator.RunRequest
	cmd := &cobra.Command{
		Use:   "run FILE [NAME=VALUE ...]",
		Short: "Run a job, or resume its instance that failed or stopped",
		Long: strings.TrimSpace(`
Runs the job of FILE with the given parameters. Its identifying parameters name the
instance: one that failed or stopped resumes, one that is complete is refused (exit
code 4) unless --again makes a new one. A relative path in a parameter starts at the
working directory; different spellings of a path are one value.

A corrected job file takes effect: a step without committed work runs by its new
definition. If a change affects committed work, the run is refused with the
difference; --from-start then runs every step from its start.

--again adds the identifying parameter ` + core.AgainName + `=N to the declared ones, with the
least N that makes a new instance; if the newest such instance has not completed, it
resumes instead.

A job with an incrementer needs neither: its newest instance resumes if it has not
completed, else the incrementer makes the next one. --next always makes the next one.

` + c.env.app.Name + ` run FILE --help lists the parameters of the job.`),
		Example: "  " + c.env.app.Name + " run jobs/load.yaml year=1996 input=strikes.csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if req.Again && req.Next {
				return usagef("--again and --next: one of them")
			}
			return c.fileAndParameters(cmd, args)
		},
		ValidArgsFunction: c.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), req, args)
		},
	}
	cmd.Flags().BoolVar(&req.Again, "again", false, "create a new instance if the one with these parameters is complete")
	cmd.Flags().BoolVar(&req.Next, "next", false, "create the next instance with the job's incrementer")
	c.addLaunchFlags(cmd, &req)
	return cmd
}

func (c runCommands) nextCommand() *cobra.Command {
	req := operator.RunRequest{Next: true}
	cmd := &cobra.Command{
		Use:   "next FILE [NAME=VALUE ...]",
		Short: "Run the next instance of a job with an incrementer",
		Long: `Runs the job of FILE with the parameters that its incrementer computes from those
of the newest execution. A job without an incrementer is refused (exit code 1).

It is "run --next". Without --next, "run" first resumes an instance that has not
completed.`,
		Example:           "  " + c.env.app.Name + " next jobs/nightly.yaml",
		Args:              c.fileAndParameters,
		ValidArgsFunction: c.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), req, args)
		},
	}
	c.addLaunchFlags(cmd, &req)
	return cmd
}

func (c runCommands) fileAndParameters(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(errors.New("which job file?"), "usage:  "+c.env.app.Name+" "+cmd.Name()+" FILE [NAME=VALUE ...]")
	}
	return nil
}

func (c runCommands) addLaunchFlags(cmd *cobra.Command, req *operator.RunRequest) {
	cmd.Flags().BoolVar(&req.FromStart, "from-start", false, "run every step of the instance's newest attempt from its start, as restart --from-start does")
	cmd.Flags().BoolVar(&req.AcceptChanges, "accept-changes", false, "resume the instance although changes of its job file, or of an input file, affect committed work")
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if files := cmd.Flags().Args(); len(files) > 0 {
			c.jobHelp(cmd, files[0])
			return
		}
		help(cmd, args)
	})
}

func (c runCommands) run(ctx context.Context, req operator.RunRequest, args []string) (err error) {
	req.File, req.Checked = args[0], c.env.app.Files[args[0]]
	if req.Params, err = parseParameters(args[1:]); err != nil {
		return err
	}
	req.Folder = c.env.dir
	if req.Checked, err = operator.Check(c.env.app.Registry, req); err != nil {
		return c.env.refusal(err)
	}
	if err := readSecrets(req.Checked.Parameters(), req.Params); err != nil {
		return err
	}
	if err := c.env.configure(); err != nil {
		return err
	}
	return c.runToEnd(ctx, func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error) {
		req.Hooks = hooks
		return s.Run(ctx, req)
	})
}

func (env *environment) loadJobFile(path string) (*jobfile.File, error) {
	if file := env.app.Files[path]; file != nil {
		return file, nil
	}
	file, err := jobfile.Load(path, env.app.Registry)
	if err != nil {
		return nil, usage(err)
	}
	return file, nil
}

func parseParameters(words []string) (map[string]string, error) {
	given := map[string]string{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, usagef("%q is not a parameter: NAME=VALUE is expected", w)
		}
		if _, twice := given[name]; twice {
			return nil, usagef("parameter %s is given twice", name)
		}
		given[name] = value
	}
	return given, nil
}

// A longer file is refused later.
const maxSecretFile = 1 << 20

// readSecrets replaces NAME=@FILE: every user of the machine can see a command
// line.
func readSecrets(specs []core.ParameterSpec, given map[string]string) error {
	for _, spec := range specs {
		path, is := strings.CutPrefix(given[spec.Name], "@")
		if !spec.Secret || !is {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return usage(fmt.Errorf("parameter %s: %w", spec.Name, err))
		}
		text, err := io.ReadAll(io.LimitReader(f, maxSecretFile))
		if err = errors.Join(err, f.Close()); err != nil {
			return usage(fmt.Errorf("parameter %s: %w", spec.Name, err))
		}
		given[spec.Name] = string(text)
	}
	return nil
}

type runFunc func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error)

// The database may be unreachable.
const summaryTime = 10 * time.Second

func (c runCommands) runToEnd(ctx context.Context, run runFunc) error {
	ignoreBrokenPipes()
	c.env.announceDatabase(ctx)
	n := c.env.newEventLog(newBars(c.env.startProgress(), c.env.now))
	defer c.env.err.endProgress()
	return c.env.withSession(ctx, n, func(s *Session) error {
		var written operator.Targets
		ctx, signals := c.env.obeySignals(ctx)
		defer signals.end()
		var notices []operator.Notice
		exec, err := run(ctx, s.Service, operator.Hooks{Stop: signals.stop, OnTarget: written.Add, OnNotice: func(n operator.Notice) {
			notices = append(notices, n)
			c.logNotice(ctx, n)
		}})
		c.env.err.endProgress()
		if exec == nil {
			return c.env.refusal(err)
		}
		summary, cancel := context.WithTimeout(context.WithoutCancel(ctx), summaryTime)
		defer cancel()
		if slices.ContainsFunc(written.All(), func(t operator.Target) bool { return t.Target == core.StdPath }) {
			c.env.out = c.env.err // standard output has the rows
		}
		exec, failure := c.summarize(summary, s, exec, n.passed, written.All(), notices)
		if failure != nil {
			c.env.log.ErrorContext(ctx, "the job has ended, but its summary failed", "error", humanize.OneLine(failure.Error()))
		}
		return c.endOf(exec, err, n)
	})
}

func (c runCommands) logNotice(ctx context.Context, n operator.Notice) {
	switch n.Kind {
	case operator.NoticeResumed:
		c.env.log.InfoContext(ctx, "the newest instance has not completed: it resumes", "execution", int64(n.Execution), "status", string(n.Status))
	case operator.NoticeFileGone:
		if n.File == "" {
			c.env.log.InfoContext(ctx, "the job has no file: it is read from the history", "execution", int64(n.Execution))
			return
		}
		c.env.log.WarnContext(ctx, "the job file is gone: the history's copy is used", "file", n.File)
	case operator.NoticeChanged:
		c.logChanges(ctx, n)
	case operator.NoticeOtherFile:
		c.logOtherFile(ctx, n)
	case operator.NoticeNotRedriven:
		c.logNotRedriven(ctx, n)
	case operator.NoticeKeyHeld:
		c.env.log.InfoContext(ctx, "waiting for an execution that this job must not run in parallel with", "execution", int64(n.Execution))
	case operator.NoticePlaced:
		for _, p := range n.Placed {
			c.env.log.WarnContext(ctx, "work waits: "+wording.Placed(p), "execution", int64(n.Execution))
		}
	case operator.NoticeNoWorker:
		c.env.log.WarnContext(ctx, "the execution waits for workers, and "+c.env.words().NoWorker(n.Waiting), "execution", int64(n.Execution), "open", n.Waiting.String())
	}
}

func (c runCommands) logOtherFile(ctx context.Context, n operator.Notice) {
	if n.WasGone {
		c.env.log.InfoContext(ctx, "the job file was elsewhere before", "execution", int64(n.Execution), "was", n.Was, "now", n.File)
		return
	}
	c.env.log.WarnContext(ctx, "another file has a job of this name, and both share its instances: rename one of them",
		"execution", int64(n.Execution), "other", n.Was, "this", n.File)
}

func (c runCommands) logChanges(ctx context.Context, n operator.Notice) {
	text := fmt.Sprintf("the job file has changed since execution %d", n.Execution)
	if n.FromStart {
		c.env.log.WarnContext(ctx, text+"; every step runs from its start")
		return
	}
	var compare []any
	for _, a := range n.Actions {
		compare = append(compare, "compare", c.env.words().Compare(a))
	}
	if !slices.ContainsFunc(n.Changes, func(change jobfile.Change) bool { return !change.NewDefinition }) && len(n.Changes) > 0 {
		for _, change := range n.Changes {
			c.env.log.InfoContext(ctx, text+": "+change.String(), append([]any{"step", change.Step}, compare...)...)
		}
		return
	}
	c.env.log.WarnContext(ctx, text, compare...)
	for _, change := range n.Changes {
		switch {
		case change.Kept != "":
			c.env.log.WarnContext(ctx, "accepted without effect: "+change.String()+"; the restart keeps "+change.Kept)
		case change.Refused:
			c.env.log.WarnContext(ctx, "accepted: "+change.String())
		case change.NewDefinition:
			c.env.log.InfoContext(ctx, "changed: "+change.String(), "step", change.Step)
		case change.What != "":
			c.env.log.WarnContext(ctx, "changed: "+change.String())
		}
	}
}

// nil if it COMPLETED. n may be nil.
func (c runCommands) endOf(e *operator.Execution, err error, n *eventLog) error {
	hints := append(c.nextHints(e), c.stackHints(n)...)
	if errors.Is(err, core.ErrLostOwner) {
		err = &lostError{e, err}
	}
	if err != nil { // the record itself is broken: its status cannot be trusted
		return &exitError{code: ExitFailed, err: err, hints: hints}
	}
	switch e.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return &exitError{code: ExitStopped, err: fmt.Errorf("job %s stopped%s", e.JobName, reasonSuffix(e.Error)), hints: hints}
	case core.StatusFailed, core.StatusUnknown, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	code := ExitFailed
	if e.ExitCode == core.ExitExpectFailed {
		code = ExitExpect
	}
	return &exitError{code: code, err: fmt.Errorf("job %s %s%s", e.JobName, strings.ToLower(string(e.Status)), reasonSuffix(e.Error)), hints: hints}
}

type lostError struct {
	of  *operator.Execution
	err error
}

func (e *lostError) Error() string {
	what := "taken over by another process after its lease expired"
	if e.of.Status == core.StatusAbandoned {
		what = "abandoned by another process"
	}
	return fmt.Sprintf("job %s, execution %d was %s; this process wrote nothing after that", e.of.JobName, e.of.ID, what)
}

func (e *lostError) Unwrap() error { return e.err }

func (c runCommands) nextHints(e *operator.Execution) []string {
	details := wording.Hint{Label: "details", Text: c.env.command("show", wording.ID(e.ID))}
	ways := c.env.words().NextHints(e.Actions)
	switch e.Status {
	case core.StatusUnknown, core.StatusAbandoned:
		return wording.HintLines(append([]wording.Hint{details}, ways...))
	case core.StatusFailed, core.StatusStopped, core.StatusCompleted, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return wording.HintLines(append(ways, details, c.env.words().Hint(operator.Action{Kind: refusal.ActExplain, Execution: e.ID})))
}

func (c runCommands) stackHints(n *eventLog) []string {
	switch {
	case n == nil || len(n.stacks) == 0:
		return nil
	case !c.env.debug:
		return []string{"the stack:   add --debug"}
	}
	var hints []string
	for _, stack := range n.stacks {
		hints = append(hints, "stack:\n"+string(stack))
	}
	return hints
}

func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
