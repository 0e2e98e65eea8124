package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// warnOfChanges compares the job with the last attempt of the instance, if that
// is to go on: another definition is worth a warning, and one without a step that
// is complete already is refused (rule F4). Who launches at the same time is no
// matter: the comparison is a service, the repository is the referee.
func (p *program) warnOfChanges(ctx context.Context, history core.Explorer, j *core.Job, params core.Parameters) error {
	last, err := history.LastExecution(ctx, j.Name, params.Key())
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the last execution: %w", err)
	}
	if last.Status == core.StatusCompleted || last.Definition.Hash == j.Definition.Hash {
		return nil
	}
	compare := p.command("show", idText(last.ID), "--definition") + " | diff - " + shellQuote(j.Definition.Path)
	gone, err := goneSteps(ctx, history, j, last.InstanceID)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		return usage(fmt.Errorf("the job file has changed since execution %d: it has no step %s any more, which is complete",
			last.ID, joinWords(gone)), "compare:  "+compare)
	}
	p.log.WarnContext(ctx, fmt.Sprintf("the job file has changed since execution %d", last.ID), "compare", compare)
	return nil
}

// goneSteps are the completed steps of the instance that the job has no more.
func goneSteps(ctx context.Context, history core.Explorer, j *core.Job, id core.JobInstanceID) ([]string, error) {
	steps, err := history.LastSteps(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the steps of the last execution: %w", err)
	}
	var gone []string
	for name, h := range steps {
		if _, ok := j.Flow.Find(name); !ok && h.Last.Status == core.StatusCompleted {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone, nil
}
