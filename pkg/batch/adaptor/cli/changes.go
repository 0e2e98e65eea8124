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
	changes, err := l.file.Changes(ctx, last, history, l.params, p.app.Registry)
	if err != nil {
		return err
	}
	return p.judgeChanges(ctx, changes, l, last)
}

func (p *program) judgeChanges(ctx context.Context, changes []jobfile.Change, l launch, last *core.JobExecution) error {
	compare := p.command("show", idText(last.ID), "--definition") + " | diff - " + shellQuote(l.path)
	var refused []error
	for _, c := range changes {
		if c.Refused && !l.accept {
			refused = append(refused, errors.New(c.String()))
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
			p.log.WarnContext(ctx, "accepted: "+c.String())
		} else if c.What != "" {
			p.log.WarnContext(ctx, "changed: "+c.String())
		}
	}
	return nil
}
