package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// PlanAct is what a restart does at an element, Certainty how sure that is.
type (
	PlanAct   = job.PlanAct
	Certainty = job.Certainty
)

// The acts and the degrees of certainty of a plan, as package job has them.
const (
	PlanPass     = job.PlanPass
	PlanResume   = job.PlanResume
	PlanRun      = job.PlanRun
	PlanRepeat   = job.PlanRepeat
	PlanSkip     = job.PlanSkip
	PlanAsk      = job.PlanAsk
	PlanStop     = job.PlanStop
	PlanLimit    = job.PlanLimit
	PlanFinally  = job.PlanFinally
	Certain      = job.Certain
	CertainIf    = job.CertainIf
	CertainAfter = job.CertainAfter
)

// RestartPlan is what a restart of an execution does, in the order in which it does so.
type RestartPlan struct {
	// Execution and Epoch are those of the execution that was looked at: the plan holds
	// while it is the newest of its instance and has this epoch.
	Execution core.JobExecutionID `json:"execution"`
	Epoch     int64               `json:"epoch"`
	Entries   []PlanEntry         `json:"entries"`
	// Limit is the step that would refuse to be attempted once more; nil: none does.
	Limit *StartLimit `json:"limit,omitempty"`
	// Gate is what the job expects, where only that is left to do.
	Gate string `json:"gate,omitempty"`
}

// PlanEntry is what a restart does at an element of the flow.
type PlanEntry struct {
	Element string `json:"element"`
	// Step is the name of the step; empty for an element of another kind.
	Step      string    `json:"step,omitempty"`
	Action    PlanAct   `json:"action"`
	Certainty Certainty `json:"certainty"`
	// Text is the condition of an entry that is not certain, or the element whose outcome
	// has to be known first.
	Text string `json:"text,omitempty"`
	// If is the condition whose answer is not known, whatever the certainty.
	If string `json:"if,omitempty"`
	// From says where a step is resumed, in words; empty: from its beginning.
	From string `json:"from,omitempty"`
	// Partitions are those of a partitioned step that is resumed.
	Partitions *PlanPartitions `json:"partitions,omitempty"`
	// Via are the transitions by which the flow may come to an entry that is CertainAfter;
	// none: it follows the entry before it.
	Via []PlanEdge `json:"via,omitempty"`
	// MayRepeat says that a loop may come to the element again.
	MayRepeat bool `json:"may_repeat,omitempty"`
	// OnWorkers says that worker processes do the work of the step.
	OnWorkers bool `json:"on_workers,omitempty"`
}

// PlanEdge is a transition behind an outcome that is not known.
type PlanEdge struct {
	From string `json:"from"`
	// On is the pattern of the exit code of From, COMPLETED for every one of a success;
	// empty: the outcome of From is known.
	On string `json:"on,omitempty"`
	// OtherSuccess says that On stands for each success but COMPLETED, which leads elsewhere.
	OtherSuccess bool `json:"other_success,omitempty"`
}

// PlanPartitions are the partitions of a step that is resumed.
type PlanPartitions struct {
	Completed int `json:"completed"`
	// Again are the partitions that run again, at most 100 of them.
	Again []PlanPartition `json:"again,omitempty"`
	// Omitted is how many more run again: Show lists them.
	Omitted int `json:"omitted,omitempty"`
}

// PlanPartition is a partition that runs again.
type PlanPartition struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"` // as of PlanEntry
}

// StartLimit is a step that was attempted as often as its start_limit allows.
type StartLimit struct {
	Step     string `json:"step"`
	Attempts int    `json:"attempts"`
	Limit    int    `json:"limit"`
}

// restartPlan plans a restart of the execution, by the walk itself. Positions and
// partitions are left out: see describeResumed.
func (s *Service) restartPlan(ctx context.Context, exec *core.JobExecution, j *core.Job) (*RestartPlan, error) {
	planned, err := job.NewPlan(ctx, s.config.Repository, j, exec, nil)
	if err != nil {
		return nil, fmt.Errorf("plan a restart of execution %d: %w", exec.ID, err)
	}
	plan := &RestartPlan{Execution: planned.Execution, Epoch: planned.Epoch, Entries: []PlanEntry{}}
	for _, e := range planned.Entries {
		plan.Entries = append(plan.Entries, planEntry(e))
	}
	if l := planned.Limit; l != nil {
		plan.Limit = &StartLimit{Step: l.Step, Attempts: l.Attempts, Limit: l.Limit}
	}
	if j.Expect != nil && plan.Limit == nil && plan.IsDone() {
		plan.Gate = j.Expect.Text
	}
	return plan, nil
}

func planEntry(e job.PlanEntry) PlanEntry {
	entry := PlanEntry{Element: e.Element, Step: e.Step, Action: e.Act, Certainty: e.Certainty, Text: e.Text, If: e.If, MayRepeat: e.MayRepeat, OnWorkers: e.OnWorkers}
	for _, edge := range e.Via {
		entry.Via = append(entry.Via, PlanEdge(edge))
	}
	return entry
}

// IsDone reports whether the restart comes to the end of the flow without a step to run.
func (p *RestartPlan) IsDone() bool {
	return !slices.ContainsFunc(p.Entries, func(e PlanEntry) bool {
		return e.Action != PlanPass && e.Action != PlanSkip && e.Action != PlanFinally
	})
}

// isFinal reports whether a restart passes a step.
func isFinal(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}
