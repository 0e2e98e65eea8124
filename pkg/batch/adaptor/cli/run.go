package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

func (p *program) runCommand() *cobra.Command {
	var req operator.RunRequest
	cmd := &cobra.Command{
		Use:   "run FILE [NAME=VALUE ...]",
		Short: "Run a job; an instance that failed or stopped goes on where it was",
		Long: strings.TrimSpace(`
Runs the job of FILE with the given parameters. Its identifying parameters make
the instance: one that failed or stopped goes on where it was, one that is
complete is refused (exit code 4) unless --again makes a new one.

--again adds the identifying parameter ` + operator.AgainName + `=N to the declared ones, with the
least N that makes a new instance; the newest such instance goes on instead where
it has not completed.

A job with an incrementer needs neither: its newest instance goes on where it has
not completed, else the incrementer makes the next one. --next always does.

` + p.app.Name + ` run FILE --help lists the parameters of the job.`),
		Example:           "  " + p.app.Name + " run jobs/load.yaml year=1996 input=strikes.csv",
		Args:              p.fileAndParameters,
		ValidArgsFunction: p.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if req.Again && req.Next {
				return usagef("--again and --next: one of them")
			}
			return p.run(cmd.Context(), req, args)
		},
	}
	cmd.Flags().BoolVar(&req.Again, "again", false, "make a new instance of a job that is complete with these parameters")
	cmd.Flags().BoolVar(&req.Next, "next", false, "make the next instance with the job's incrementer")
	p.addLaunchFlags(cmd, &req)
	return cmd
}

func (p *program) nextCommand() *cobra.Command {
	req := operator.RunRequest{Next: true}
	cmd := &cobra.Command{
		Use:   "next FILE [NAME=VALUE ...]",
		Short: "Run the next instance of a job, which its incrementer makes",
		Long: `Runs the job of FILE with the parameters that its incrementer makes of those of
the newest execution. A job without an incrementer is refused (exit code 1).

It is "run --next". Without --next, "run" goes on first with an instance that has
not completed.`,
		Example:           "  " + p.app.Name + " next jobs/nightly.yaml",
		Args:              p.fileAndParameters,
		ValidArgsFunction: p.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), req, args)
		},
	}
	p.addLaunchFlags(cmd, &req)
	return cmd
}

func (p *program) fileAndParameters(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(errors.New("which job file?"), "usage:  "+p.app.Name+" "+cmd.Name()+" FILE [NAME=VALUE ...]")
	}
	return nil
}

// addLaunchFlags adds what run and next have both.
func (p *program) addLaunchFlags(cmd *cobra.Command, req *operator.RunRequest) {
	cmd.Flags().BoolVar(&req.AcceptChanges, "accept-changes", false, "go on with an instance though its job file has changed in what was done already, or a file behind what was read of it")
	p.addFormatFlag(cmd)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if files := cmd.Flags().Args(); len(files) > 0 {
			p.jobHelp(cmd, files[0])
			return
		}
		help(cmd, args)
	})
}

func (p *program) run(ctx context.Context, req operator.RunRequest, args []string) (err error) {
	req.File, req.Checked = args[0], p.app.Files[args[0]]
	if req.Params, err = parseParameters(args[1:]); err != nil {
		return err
	}
	if req.Checked, err = operator.Check(p.app.Registry, req); err != nil {
		return p.refusal(err)
	}
	if err := p.configure(); err != nil {
		return err
	}
	return p.follow(ctx, func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error) {
		req.Hooks = hooks
		return s.Run(ctx, req)
	})
}

// load reads a job file; whatever is wrong with it is a matter of usage.
func (p *program) load(path string) (*jobfile.File, error) {
	if file := p.app.Files[path]; file != nil {
		return file, nil
	}
	file, err := jobfile.Load(path, p.app.Registry)
	if err != nil {
		return nil, usage(err)
	}
	return file, nil
}

// parseParameters reads name=value words.
func parseParameters(words []string) (map[string]string, error) {
	given := map[string]string{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, usagef("%q is no parameter: NAME=VALUE is expected", w)
		}
		if _, twice := given[name]; twice {
			return nil, usagef("parameter %s is given twice", name)
		}
		given[name] = value
	}
	return given, nil
}

// following runs a job to its end with the hooks of the command.
type following func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error)

// follow runs a job, logs what happens, and prints the summary.
func (p *program) follow(ctx context.Context, run following) error {
	outlivePipes()
	p.announceDatabase(ctx)
	n := newNarrator(p.log, newBars(p.err.startProgress(), p.now), p.now)
	defer p.err.endProgress()
	return p.withSession(ctx, n, func(s *Session) error {
		var written targets
		ctx, signals := p.obeySignals(ctx)
		defer signals.end()
		exec, err := run(ctx, s.Service, operator.Hooks{Stop: signals.stop, OnTarget: written.add, OnNotice: func(n operator.Notice) { p.notice(ctx, n) }})
		p.err.endProgress()
		if exec == nil {
			return p.refusal(err)
		}
		exec, failure := p.summarize(context.WithoutCancel(ctx), s, exec, n.passed, written.all())
		if failure != nil {
			p.log.ErrorContext(ctx, "the job is over, but its summary failed", "error", oneLine(failure.Error()))
		}
		return p.explain(exec, err, n)
	})
}

// notice logs what the service has to say before a run.
func (p *program) notice(ctx context.Context, n operator.Notice) {
	switch n.Kind {
	case operator.NoticeResumed:
		p.log.InfoContext(ctx, "the newest instance has not completed: it goes on", "execution", int64(n.Execution), "status", string(n.Status))
	case operator.NoticeFileGone:
		p.log.WarnContext(ctx, "the job file is gone: it is taken from the history", "file", n.File)
	case operator.NoticeChanged:
		p.changed(ctx, n)
	case operator.NoticeNotRedriven:
		p.notRedriven(ctx, n)
	}
}

func (p *program) changed(ctx context.Context, n operator.Notice) {
	text := fmt.Sprintf("the job file has changed since execution %d", n.Execution)
	if n.FromStart {
		p.log.WarnContext(ctx, text+"; everything runs anew")
		return
	}
	p.log.WarnContext(ctx, text, "compare", p.compareLine(operator.Action{Execution: n.Execution, File: n.File}))
	for _, c := range n.Changes {
		if c.Refused {
			p.log.WarnContext(ctx, "accepted: "+c.String())
		} else if c.What != "" {
			p.log.WarnContext(ctx, "changed: "+c.String())
		}
	}
}

// explain turns the end of an execution into the command's end. n may be nil.
func (p *program) explain(e *operator.Execution, err error, n *narrator) error {
	hints := append(p.goOnHints(e), p.stackHints(n)...)
	if err != nil { // the record itself is broken: its status is not to be believed
		return &exitError{code: ExitFailed, err: err, hints: hints}
	}
	switch e.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return &exitError{code: ExitStopped, err: fmt.Errorf("job %s stopped%s", e.JobName, because(e.Error)), hints: hints}
	case core.StatusFailed, core.StatusUnknown, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	code := ExitFailed
	if e.ExitCode == core.ExitExpectFailed {
		code = ExitExpect
	}
	return &exitError{code: code, err: fmt.Errorf("job %s %s%s", e.JobName, strings.ToLower(string(e.Status)), because(e.Error)), hints: hints}
}

// goOnHints are what can be done about an execution that did not complete.
func (p *program) goOnHints(e *operator.Execution) []string {
	details := hint{"details", p.command("show", idText(e.ID))}
	ways := p.ways(*e)
	switch e.Status {
	case core.StatusUnknown, core.StatusAbandoned:
		return hintLines(append([]hint{details}, ways...))
	case core.StatusFailed, core.StatusStopped, core.StatusCompleted, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return hintLines(append(ways, details, p.actionHint(operator.Action{Kind: operator.ActExplain, Execution: e.ID})))
}

// stackHints show where a component panicked.
func (p *program) stackHints(n *narrator) []string {
	switch {
	case n == nil || len(n.stacks) == 0:
		return nil
	case !p.debug:
		return []string{"the stack:   add --debug"}
	}
	var hints []string
	for _, stack := range n.stacks {
		hints = append(hints, "stack:\n"+string(stack))
	}
	return hints
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
