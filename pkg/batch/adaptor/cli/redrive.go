package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/chunk/redrive"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// redriveName is the identifying parameter that makes a redrive an instance of its
// own: EXECUTION.STEP.N. A declared one cannot have this name, for the dot.
const redriveName = "run.redrive"

// redriveOrder is a redrive as it was asked for.
type redriveOrder struct {
	execution  core.JobExecutionID
	step       string
	from, file string
	words      []string // NAME=VALUE

	exec   *core.JobExecution
	steps  map[string]core.StepExecution
	edited map[int64]json.RawMessage
	params core.Parameters
}

func (p *program) redriveCommand() *cobra.Command {
	var o redriveOrder
	cmd := &cobra.Command{
		Use:   "redrive EXECUTION [NAME=VALUE ...]",
		Short: "Run the skipped items of an execution through the same step again",
		Long: `Runs the skipped items of EXECUTION that are left through the processors and
writers of their step, with the execution's parameters. NAME=VALUE changes one of
them. No other step runs. It is an execution of its own, which can be redriven
again where it fails; "show" names both in each other's history. An item that is
skipped again is left.

The job file is read from where it was at that time, or from --file; where it is
gone, it is taken from the history. With --from only the items of the file are
redriven, as they are written there (see "skips export").`,
		Example: "  " + p.app.Name + " skips redrive 12\n  " + p.app.Name + " skips redrive 12 --from skipped.jsonl",
		Args: func(cmd *cobra.Command, args []string) error {
			return oneExecution(cmd, args[:min(1, len(args))])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.execution, err = parseExecution(args[0]); err != nil {
				return err
			}
			o.words = args[1:]
			return p.redrive(cmd.Context(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.step, "step", "", "the step with this `NAME` (default: the only one with skipped items)")
	f.StringVar(&o.from, "from", "", "an edited export: only its items, as they are in `FILE`")
	f.StringVar(&o.file, "file", "", "the job `FILE` (default: the one that the execution was started with)")
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) redrive(ctx context.Context, o *redriveOrder) (err error) {
	if o.from != "" {
		if o.edited, err = readSkips(o.from); err != nil {
			return err
		}
	}
	if err := p.configure(); err != nil {
		return err
	}
	if err := p.redriven(ctx, o); err != nil {
		return err
	}
	file, path, err := p.redriveFile(ctx, o)
	if err != nil {
		return err
	}
	if o.params, err = redriveParameters(file, o); err != nil {
		return err
	}
	return p.performRedrive(ctx, o, file, path)
}

// redriven reads the execution that is redriven.
func (p *program) redriven(ctx context.Context, o *redriveOrder) (err error) {
	o.exec, err = p.execution(ctx, o.execution, func(s *Session) error {
		steps, err := s.Repository.Steps(ctx, o.execution)
		o.steps = make(map[string]core.StepExecution, len(steps))
		for _, step := range steps {
			o.steps[step.Name] = step
		}
		return err
	})
	if err == nil && o.exec.RedriveOf != 0 {
		return usage(fmt.Errorf("execution %d is a redrive itself: what it skipped again is left in execution %d", o.execution, o.exec.RedriveOf),
			"redrive it:  "+p.redriveLine(*o.exec))
	}
	return err
}

// redriveFile reads the job file, or what the history has of one that is gone.
func (p *program) redriveFile(ctx context.Context, o *redriveOrder) (file *jobfile.File, path string, err error) {
	definition := o.exec.Definition
	if path = o.file; path == "" {
		path = definition.Path
	}
	_, missing := os.Stat(path)
	if o.file == "" && definition.Text != "" && errors.Is(missing, fs.ErrNotExist) {
		p.log.WarnContext(ctx, "the job file is gone: it is taken from the history", "file", path)
		if file, err = jobfile.Parse(path, []byte(definition.Text), p.app.Registry); err != nil {
			return nil, path, usage(err)
		}
	} else if file, err = p.load(path); err != nil {
		return nil, path, withHint(err, "another file:  "+p.redriveLine(*o.exec, "--file", "FILE"))
	}
	if file.Name() != o.exec.JobName {
		return nil, path, usagef("%s is job %s, and execution %d is of job %s", path, file.Name(), o.execution, o.exec.JobName)
	}
	if file.Definition().Hash != definition.Hash {
		p.log.WarnContext(ctx, fmt.Sprintf("the job file has changed since execution %d", o.execution))
	}
	return file, path, nil
}

// redriveParameters are those of the execution, as far as the command line does
// not change them.
func redriveParameters(file *jobfile.File, o *redriveOrder) (core.Parameters, error) {
	given, err := parseParameters(o.words)
	if err != nil {
		return core.Parameters{}, err
	}
	var number int64
	for _, q := range o.exec.Params.All() {
		if n, ok := q.Value.(int64); ok && q.Name == againName {
			number = n
			continue
		}
		if _, changed := given[q.Name]; changed {
			continue
		}
		if given[q.Name], err = q.Canonical(); err != nil {
			return core.Parameters{}, err
		}
	}
	params, err := job.ValidateParameters(file.Parameters(), given)
	if err == nil {
		params, err = withAgain(params, number)
	}
	if err != nil {
		return params, usage(fmt.Errorf("the parameters of execution %d: %w", o.execution, err))
	}
	return params, nil
}

// performRedrive launches the redrive, tells what happens, and prints the summary.
func (p *program) performRedrive(ctx context.Context, o *redriveOrder, file *jobfile.File, path string) error {
	outlivePipes()
	p.announceDatabase(ctx)
	n := newNarrator(p.log, newBars(p.err.startProgress(), p.now), p.now)
	defer p.err.endProgress()
	return p.withSession(ctx, n, func(s *Session) error {
		plan, err := p.planRedrive(ctx, s, o)
		if err != nil {
			return err
		}
		var written targets
		j, err := file.CompileRedrive(jobfile.Deps{Provider: s.Provider, Registry: written.watch(s.Registry), FileMode: p.settings.Files.Mode}, jobfile.Redrive{
			Plan: plan, Steps: o.steps, Check: written.keepFiles,
		})
		if err != nil {
			return usage(err)
		}
		if j.Definition.Path, err = filepath.Abs(path); err != nil {
			return err
		}
		params, err := nextRedrive(ctx, s.Repository, j, o, plan.Step)
		if err != nil {
			return err
		}
		ctx, signals := p.obeySignals(ctx)
		defer signals.end()
		exec, err := s.Launcher.Run(ctx, j, params, signals.stop)
		p.err.endProgress()
		if exec == nil {
			return p.redriveRefused(err)
		}
		exec, failure := p.summarize(context.WithoutCancel(ctx), s, exec, n.passed, written.all())
		if failure != nil {
			p.log.ErrorContext(ctx, "the redrive is over, but its summary failed", "error", oneLine(failure.Error()))
		}
		return p.explain(exec, err, path, n)
	})
}

// planRedrive says what will be redriven, and warns of what cannot be.
func (p *program) planRedrive(ctx context.Context, s *Session, o *redriveOrder) (*redrive.Plan, error) {
	plan, err := redrive.New(ctx, s.Repository, redrive.Request{Execution: o.execution, Step: o.step, Edited: o.edited})
	var steps *redrive.StepsError
	switch {
	case errors.Is(err, redrive.ErrNothing):
		return nil, &exitError{code: ExitRefused, err: fmt.Errorf("execution %d: %w", o.execution, err),
			hints: []string{"its skipped items:  " + p.command("skips", "list", idText(o.execution))}}
	case errors.As(err, &steps):
		hints := make([]string, len(steps.Steps))
		for i, name := range steps.Steps {
			hints[i] = "one of them:  " + p.command("skips", "redrive", idText(o.execution), "--step", name)
		}
		return nil, usage(fmt.Errorf("execution %d: %w", o.execution, err), hints...)
	case err != nil && o.edited != nil:
		return nil, usage(err)
	case err != nil:
		return nil, err
	}
	give := p.command("skips", "export", idText(o.execution), "--out", "FILE") + ", give their item, and add --from FILE"
	if plan.Items == 0 {
		return nil, usage(joinRefusals(plan.Refused), "give the items:  "+give)
	}
	for _, r := range plan.Refused[:min(len(plan.Refused), mostRefusals)] {
		p.log.WarnContext(ctx, "not redriven: "+r.Error())
	}
	if n := len(plan.Refused); n > 0 {
		p.log.WarnContext(ctx, plural(n, "skipped item")+" cannot be redriven as stored", "how", give)
	}
	return plan, nil
}

// mostRefusals is how many items that cannot be redriven are named.
const mostRefusals = 5

func joinRefusals(list []redrive.Refusal) error {
	var errs []error
	for _, r := range list[:min(len(list), mostRefusals)] {
		errs = append(errs, r)
	}
	if more := len(list) - mostRefusals; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// nextRedrive returns the parameters of the newest redrive of the step if that
// can go on, else of one more.
func nextRedrive(ctx context.Context, history core.Explorer, j *core.Job, o *redriveOrder, step string) (core.Parameters, error) {
	var last *core.JobExecution
	numbered := func(n int64) (core.Parameters, error) {
		mark := core.Parameter{Name: redriveName, Type: core.TypeString, Value: fmt.Sprintf("%d.%s.%d", o.execution, step, n+1), Identifying: true}
		return core.NewParameters(append(o.params.All(), mark)...)
	}
	newest, err := newestNumber(func(n int64) (bool, error) {
		params, err := numbered(n)
		if err != nil {
			return false, err
		}
		exec, err := history.LastExecution(ctx, j.Name, params.Key())
		if errors.Is(err, core.ErrNotFound) {
			return false, nil
		}
		last = exec
		return err == nil, err
	})
	if err != nil {
		return core.Parameters{}, fmt.Errorf("find the last redrive: %w", err)
	}
	if newest >= 0 && canGoOn(j, last.Status) {
		return numbered(newest)
	}
	return numbered(newest + 1)
}

func (p *program) redriveRefused(err error) error {
	hints := p.hints(err)
	var running *core.AlreadyRunningError
	if errors.As(err, &running) {
		hints = append(hints, p.runningHints(running.ExecutionID, running.Owner)...)
	}
	code := codeOf(err)
	if errors.As(err, new(jobfile.Problems)) {
		code = ExitUsage
	}
	return &exitError{code: code, err: err, hints: hints}
}

// redriveLine is the command that redrives what an execution, or the one that it
// redrives, has left.
func (p *program) redriveLine(e core.JobExecution, more ...string) string {
	words := []string{"skips", "redrive", idText(e.ID)}
	if e.RedriveOf != 0 {
		words[2] = idText(e.RedriveOf)
		if mark, ok := e.Params.Get(redriveName); ok {
			if parts := strings.SplitN(fmt.Sprint(mark.Value), ".", 3); len(parts) == 3 {
				words = append(words, "--step", parts[1])
			}
		}
	}
	return p.command(slices.Concat(words, more)...)
}

// keepFiles refuses a redrive whose file would take the place of another one: it
// would hold the redriven items only.
func (t *targets) keepFiles(run *core.StepRun, parts chunk.Parts) error {
	if len(run.Step.Position) > 0 {
		return nil // it goes on with a file of its own
	}
	files := slices.ContainsFunc(parts.Writers, func(w core.Writer) bool {
		_, ok := w.Component().(core.Finisher)
		return ok
	})
	for _, target := range t.all() {
		if info, err := os.Stat(target.Target); files && target.Database == "" && err == nil && info.Mode().IsRegular() {
			return fmt.Errorf("writer %s: %s is there already, and a redrive would replace it by a file of the redriven items: name another file with a parameter, or move it away",
				target.Writer, target.Target)
		}
	}
	return nil
}
