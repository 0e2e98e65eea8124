package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkChanges compares the job file with what the last attempt of the instance
// ran, if that is to go on (rule F4): changes of what was done already refuse the
// launch, unless they are accepted; others are worth a warning. Who launches at the
// same time is no matter: the comparison is a service, the repository is the referee.
func (p *program) checkChanges(ctx context.Context, history core.Explorer, j *core.Job, l launch) error {
	last, err := history.LastExecution(ctx, j.Name, l.params.Key())
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the last execution: %w", err)
	}
	if last.Status == core.StatusCompleted || last.Definition.Hash == j.Definition.Hash {
		return nil
	}
	if l.fromStart {
		p.log.WarnContext(ctx, fmt.Sprintf("the job file has changed since execution %d; everything runs anew", last.ID))
		return nil
	}
	changes, err := p.changes(ctx, history, l, last)
	if err != nil {
		return err
	}
	return p.judgeChanges(ctx, changes, l, last)
}

// changes are the differences between the stored text of the last attempt and the
// file as it is.
func (p *program) changes(ctx context.Context, history core.Explorer, l launch, last *core.JobExecution) ([]jobfile.Change, error) {
	steps, err := history.LastSteps(ctx, last.InstanceID, anewSince(last))
	if err != nil {
		return nil, fmt.Errorf("read the steps of the last execution: %w", err)
	}
	before, err := jobfile.Parse(l.path, []byte(last.Definition.Text), p.app.Registry)
	if err != nil { // such as a component that is no more
		return []jobfile.Change{{What: "the file as it was cannot be read any more, so that nobody can tell what is different: " + oneLine(err.Error()), Refused: true}}, nil
	}
	return jobfile.Compare(before, l.file, l.params, steps), nil
}

// anewSince is the execution since which the instance's steps count.
func anewSince(last *core.JobExecution) core.JobExecutionID {
	if last.Context == nil {
		return 0
	}
	value, _ := last.Context.Get(core.FromStartKey)
	id, _ := value.(int64) // zero where there is none: all of them count
	return core.JobExecutionID(id)
}

func (p *program) judgeChanges(ctx context.Context, changes []jobfile.Change, l launch, last *core.JobExecution) error {
	compare := p.command("show", idText(last.ID), "--definition") + " | diff - " + shellQuote(l.path)
	var refused []error
	for _, c := range changes {
		if c.Refused && !l.accept {
			refused = append(refused, errors.New(changeText(c)))
		}
	}
	if len(refused) > 0 {
		first := fmt.Errorf("the job file has changed since execution %d in what a restart relies on", last.ID)
		hints := []string{"compare:        " + compare}
		if last.RedriveOf == 0 {
			hints = append(hints,
				"go on anyway:   "+p.command("restart", idText(last.ID), "--file", l.path, "--accept-changes"),
				"all of it anew: "+p.command("restart", idText(last.ID), "--file", l.path, "--from-start"))
		}
		return usage(errors.Join(append([]error{first}, refused...)...), hints...)
	}
	p.log.WarnContext(ctx, fmt.Sprintf("the job file has changed since execution %d", last.ID), "compare", compare)
	for _, c := range changes {
		if c.Refused {
			p.log.WarnContext(ctx, "accepted: "+changeText(c))
		} else if c.What != "" {
			p.log.WarnContext(ctx, "changed: "+changeText(c))
		}
	}
	return nil
}

func changeText(c jobfile.Change) string {
	if c.Step == "" {
		return c.What
	}
	return "step " + c.Step + " " + c.What
}
