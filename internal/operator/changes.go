package operator

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// comparison compares a job with the last attempt of its instance.
type comparison struct {
	records     comparedRecords
	checkpoints Checkpoints // may be nil
	registry    *registry.Registry
}

type comparedRecords interface {
	ports.Explorer
	Database() string
}

// changes returns the differences of the job file since the last attempt of its instance. It
// refuses changes of committed work.
func (s *comparison) changes(ctx context.Context, last *core.JobExecution, l *launch) ([]jobfile.Change, error) {
	changes, err := l.file.Changes(ctx, jobfile.Restart{
		Last: last, Params: l.params, History: s.restartHistory(l, last), Registry: s.registry,
	})
	var changed *jobfile.ChangedError
	if !errors.As(err, &changed) {
		return changes, err
	}
	return changes, changedRefusal(changed, last, l)
}

// changedRefusal refuses changes of committed work since the last attempt.
func changedRefusal(changed *jobfile.ChangedError, last *core.JobExecution, l *launch) *Refusal {
	r := &Refusal{Reason: refusal.Changed, Last: last.ID, Details: changed.Refused(), Diff: changed.Diff, Err: changed}
	if last.Definition.Hash != l.job.Definition.Hash {
		r.Actions = compareActions(changed.Execution, last.Definition, l.job.Definition, l.path)
	}
	if last.RedriveOf == 0 {
		r.Actions = append(r.Actions,
			Action{Kind: refusal.ActRestart, Execution: last.ID, File: l.path, AcceptChanges: true},
			Action{Kind: refusal.ActRestart, Execution: last.ID, File: l.path, FromStart: true})
	}
	return r
}

// restartHistory returns the part of the history that the attempt keeps, for the comparison of
// definitions.
func (s *comparison) restartHistory(l *launch, last *core.JobExecution) ports.History {
	h := ports.History{Records: s.records, Database: s.records.Database()}
	if l.from != nil {
		h.Records = l.from.Records(h.Records, last.InstanceID)
	}
	if s.checkpoints != nil {
		h.Checkpoints = s.checkpoints
	}
	return h
}
