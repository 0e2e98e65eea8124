package wording

import (
	"cmp"
	"fmt"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// Progress describes a running step of an execution: its rows, its end and its process.
func (c Commands) Progress(p *operator.ProgressView) string {
	text := fmt.Sprintf("execution %d, job %s", p.Execution, p.JobName)
	if p.Step != "" {
		text += fmt.Sprintf(", step %s: %s read, %s written, %s filtered, %s skipped, %s rows/s",
			p.Step, humanize.Count(p.Read), humanize.Count(p.Written), humanize.Count(p.Filtered), humanize.Count(p.Skipped), humanize.Count(int64(p.PerSecond)))
	}
	text += "; " + Percent(p) + " done, " + TimeLeft(p) + " left"
	if work := Work(p); work != "" {
		text += ", " + work
	}
	return text + "; " + string(p.Status) + StateNote(p) + ", " + c.DoneBy(p)
}

// Percent is "80%", or "?" if it cannot be estimated.
func Percent(p *operator.ProgressView) string {
	if p.Percent == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f%%", *p.Percent)
}

// TimeLeft is the estimated rest, or "?".
func TimeLeft(p *operator.ProgressView) string {
	if p.Left == nil {
		return "?"
	}
	return humanize.Seconds(*p.Left)
}

// Work is the step's work in tasks, a child job or partitions; "" if it has none.
func Work(p *operator.ProgressView) string {
	switch {
	case p.Tasks != nil:
		return Tasks(p.Tasks)
	case p.Child != 0:
		return fmt.Sprintf("execution %d: %s", p.Child, p.ChildStatus)
	case p.Partitions == 0:
		return ""
	}
	return PartsDone(p.PartitionsDone, p.Partitions)
}

// StateNote follows the status: " (stop requested)", " (owner gone)".
func StateNote(p *operator.ProgressView) string {
	if p.StopRequested {
		return " (stop requested)" + OwnerNote(p.Owner)
	}
	return OwnerNote(p.Owner)
}

// OwnerNote follows the status of an execution without a live owner.
func OwnerNote(o *operator.Owner) string {
	switch {
	case o == nil:
		return ""
	case o.Dead:
		return " (owner gone)"
	case o.Lost:
		return " (lease expired)"
	}
	return ""
}

// DoneBy is the process or the workers of a running step, or why it waits.
func (c Commands) DoneBy(p *operator.ProgressView) string {
	lacks := c.NoWorker(p.Waiting)
	switch {
	case lacks != "":
		return lacks
	case len(p.Placed) > 0:
		return Placed(p.Placed[0])
	case p.Owner == nil && p.Status.IsRunning():
		return "workers"
	case p.Owner == nil:
		return "no process"
	}
	return Process(p.Owner.PID, p.Owner.Host)
}

// StepNotes are the warnings of a step, and what a restart changed in it.
func StepNotes(s *operator.StepView) (notes []string) {
	for _, text := range s.Warnings {
		notes = append(notes, "warning: "+text)
	}
	if s.NewDefinition {
		notes = append(notes, "took its new definition, as nothing was committed by the old one")
	}
	return notes
}

// About is the subject of an audit row of an execution.
func About(a *operator.AuditView) string {
	if a.Step == 0 {
		return "job"
	}
	return cmp.Or(a.StepName, fmt.Sprintf("step execution %d", a.Step))
}
