package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

func (p *program) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain EXECUTION",
		Short: "Explain an execution: why it ended so, what is committed, what a restart does",
		Long: `Says in plain English why an execution ended as it did, or what it is doing: which
step and item made it so, what is committed, what was skipped, what was decided,
what a restart will do or why there is none, and the commands for it.

It reads the history only, and the job file as it was when the execution began.`,
		Example:           "  " + p.app.Name + " explain 12",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return p.explainExecution(cmd.Context(), id)
		},
	}
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) explainExecution(ctx context.Context, id core.JobExecutionID) error {
	if err := p.configure(); err != nil {
		return err
	}
	var found *past
	_, err := p.execution(ctx, id, func(s *Session) (err error) {
		found, err = p.gather(ctx, s, id)
		return err
	})
	if err != nil {
		return err
	}
	e := p.newExplanation(found)
	if p.format == formatJSON {
		return p.printJSON(e)
	}
	return p.print(e.text())
}

// past is what the history knows of an execution, read with a number of statements
// that does not depend on how long it is.
type past struct {
	exec core.JobExecution
	// newest is the newest execution of its instance.
	newest core.JobExecution
	steps  []core.StepExecution // of this execution
	// history is the newest execution of each step in the instance.
	history map[string]core.StepHistory
	skips   []core.SkipCount
	// partly says that skips are counted over the first ones only.
	partly bool
	// job and uses are what the stored job file says; nil where it does not say it
	// any more, as when a component is gone.
	job  *core.Job
	uses []jobfile.Used
	// changed says what became of the job file since; empty: it is the same.
	changed string
}

func (p *program) gather(ctx context.Context, s *Session, id core.JobExecutionID) (*past, error) {
	exec, err := s.Repository.Execution(ctx, id)
	if err != nil {
		return nil, p.notFound(err, id)
	}
	found := &past{exec: *exec, newest: *exec}
	newest, err := s.Repository.LastExecution(ctx, exec.JobName, exec.Params.Key())
	switch {
	case err == nil:
		found.newest = *newest
	case !errors.Is(err, core.ErrNotFound):
		return nil, fmt.Errorf("read the newest execution of the instance: %w", err)
	}
	if found.steps, err = s.Repository.Steps(ctx, id); err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", id, err)
	}
	var since int64
	if exec.Context != nil {
		anew, _ := exec.Context.Get(core.FromStartKey)
		since, _ = anew.(int64)
	}
	if found.history, err = s.Repository.LastSteps(ctx, exec.InstanceID, core.JobExecutionID(since)); err != nil {
		return nil, fmt.Errorf("read the steps of the instance: %w", err)
	}
	if err := found.countSkips(ctx, s.Repository); err != nil {
		return nil, err
	}
	p.recall(found, s)
	return found, nil
}

// mostSkips is how many skipped items are looked at where the repository does not
// count them.
const mostSkips = 200

func (f *past) countSkips(ctx context.Context, r core.JobRepository) error {
	if !slices.ContainsFunc(f.steps, func(s core.StepExecution) bool { return s.Counters.Skips() > 0 }) {
		return nil
	}
	if insight, ok := r.(core.Insight); ok {
		var err error
		f.skips, err = insight.SkipCounts(ctx, f.exec.ID)
		return err
	}
	items, err := r.SkippedItems(ctx, core.SkipFilter{Execution: f.exec.ID, Limit: mostSkips})
	if err != nil {
		return fmt.Errorf("read the skipped items of execution %d: %w", f.exec.ID, err)
	}
	f.partly = len(items) == mostSkips
	for _, item := range items {
		at := slices.IndexFunc(f.skips, func(c core.SkipCount) bool {
			return c.Step == item.Step && c.Phase == item.Phase && c.Class == item.Class
		})
		if at < 0 {
			at = len(f.skips)
			f.skips = append(f.skips, core.SkipCount{Step: item.Step, Phase: item.Phase, Class: item.Class})
		}
		f.skips[at].Count++
		if item.RedrivenBy == 0 {
			f.skips[at].Left++
		}
	}
	return nil
}

// recall reads the job file as it is stored with the execution. One that this
// program does not understand any more is no error: less is said then.
func (p *program) recall(f *past, s *Session) {
	d := f.exec.Definition
	file, err := jobfile.Parse(d.Path, []byte(d.Text), p.app.Registry)
	if err != nil {
		return
	}
	f.uses = file.Uses(f.exec.Params)
	if compiled, err := file.Compile(jobfile.Deps{Provider: s.Provider, Registry: s.Registry}); err == nil {
		f.job = compiled
	}
	now, err := smallfile.Read(d.Path)
	if err != nil && !errors.Is(err, smallfile.ErrTooLarge) {
		f.changed = "is not there any more"
		return
	}
	if sum := sha256.Sum256(now); hex.EncodeToString(sum[:]) != d.Hash {
		f.changed = "has changed since"
	}
}

// lease says whether the owner of a running execution is still there.
type lease string

const (
	leaseHeld    lease = "held"
	leaseExpired lease = "expired"
	leaseDead    lease = "dead" // its process was on this host, and is gone
)

func (p *program) leaseOf(e core.JobExecution) lease {
	switch {
	case job.DeadOwner(e.Owner):
		return leaseDead
	case !e.LeaseUntil.IsZero() && p.now().After(e.LeaseUntil):
		return leaseExpired
	}
	return leaseHeld
}
