package step

import (
	"maps"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// private is what a step's goroutine works on: nothing that it may change, or that
// others change when it is left behind, is shared with the executor and the flow.
func private(run *core.StepRun) *core.StepRun {
	own := *run
	job, record := *run.Job, cloned(*run.Step)
	if job.Context != nil {
		job.Context = job.Context.Clone()
	}
	own.Job, own.Step = &job, &record
	own.Steps, own.Parts = clonedAll(run.Steps), clonedAll(run.Parts)
	own.Earlier, own.Last, own.Planned = clonedRecord(run.Earlier), clonedRecord(run.Last), clonedRecord(run.Planned)
	if run.Outcome != nil {
		outcome := *run.Outcome
		own.Outcome = &outcome
	}
	if run.Part != nil {
		part := *run.Part
		if part.Context != nil {
			part.Context = part.Context.Clone()
		}
		own.Part = &part
	}
	if run.Group != nil {
		own.Group = &core.Group{Name: run.Group.Name, Database: run.Group.Database}
	}
	own.Listeners = nil
	return &own
}

func cloned(s core.StepExecution) core.StepExecution {
	if s.Context != nil {
		s.Context = s.Context.Clone()
	}
	s.Out = maps.Clone(s.Out)
	return s
}

func clonedRecord(s *core.StepExecution) *core.StepExecution {
	if s == nil {
		return nil
	}
	c := cloned(*s)
	return &c
}

func clonedAll(records map[string]core.StepExecution) map[string]core.StepExecution {
	own := maps.Clone(records)
	for name, s := range own {
		own[name] = cloned(s)
	}
	return own
}
