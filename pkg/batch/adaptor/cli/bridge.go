package cli

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// viewOf is the view of an execution, for commands that have its record.
func (p *program) viewOf(e core.JobExecution) operator.Execution {
	view := operator.Execution{
		ID: e.ID, InstanceID: e.InstanceID, JobName: e.JobName, Status: e.Status, ExitCode: e.ExitCode, Error: e.Error,
		Attempt: e.Attempt, Params: operator.Parameters{Parameters: e.Params}, CreatedAt: e.CreatedAt.UTC(), StartedAt: e.StartedAt.UTC(), EndedAt: e.EndedAt.UTC(),
		Duration: elapsed(e.StartedAt, e.EndedAt, p.now()).Seconds(),
		File:     e.Definition.Path, RedriveOf: e.RedriveOf, Parent: e.Parent, Gate: e.Gate,
	}
	if e.Status.IsRunning() {
		view.Owner = &operator.Owner{Host: e.Owner.Host, PID: e.Owner.PID, LeaseUntil: e.LeaseUntil.UTC(), Dead: job.DeadOwner(e.Owner)}
	}
	return view
}
