package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlanAct is the effect of a restart on an element, Certainty its certainty.
type (
	PlanAct   = planner.Act
	Certainty = planner.Certainty
)

// The acts and the degrees of certainty of a plan, as package job has them.
const (
	PlanPass     = planner.ActPass
	PlanResume   = planner.ActResume
	PlanRun      = planner.ActRun
	PlanRepeat   = planner.ActRepeat
	PlanSkip     = planner.ActSkip
	PlanAsk      = planner.ActAsk
	PlanStop     = planner.ActStop
	PlanLimit    = planner.ActLimit
	PlanFinally  = planner.ActFinally
	Certain      = planner.Certain
	CertainIf    = planner.CertainIf
	CertainAfter = planner.CertainAfter
)

// RestartPlan lists the effects of a restart, in order.
type RestartPlan struct {
	// The plan holds while Execution is its instance's newest and has Epoch.
	Execution core.JobExecutionID `json:"execution"`
	Epoch     int64               `json:"epoch"`
	Entries   []PlanEntry         `json:"entries"`
	// Limit is the step that would refuse another attempt, or nil.
	Limit *StartLimit `json:"limit,omitempty"`
	// Gate is the job's `expect`, if only that is left to do.
	Gate string `json:"gate,omitempty"`
}

// PlanEntry is the effect of a restart on an element of the flow.
type PlanEntry struct {
	Element string `json:"element"`
	// Step is empty for another kind of element.
	Step      string    `json:"step,omitempty"`
	Action    PlanAct   `json:"action"`
	Certainty Certainty `json:"certainty"`
	// PassedBy is the execution that completed or abandoned a step that is passed.
	PassedBy  core.JobExecutionID `json:"passed_by,omitempty"`
	Abandoned bool                `json:"abandoned,omitempty"`
	// Text is the condition, or the element with an outcome that has to be
	// known first.
	Text string `json:"text,omitempty"`
	// If is the condition with an unknown answer.
	If string `json:"if,omitempty"`
	// From: empty means the beginning.
	From       string          `json:"from,omitempty"`
	Partitions *PlanPartitions `json:"partitions,omitempty"`
	// Via are the transitions to an entry that is CertainAfter; empty if it
	// follows the entry before it.
	Via []PlanEdge `json:"via,omitempty"`
	// MayRepeat: a loop may reach it again.
	MayRepeat bool `json:"may_repeat,omitempty"`
	OnWorkers bool `json:"on_workers,omitempty"`
}

// PlanEdge is a transition after an unknown outcome.
type PlanEdge struct {
	From string `json:"from"`
	// On is the exit code's pattern, COMPLETED for every success; empty if the
	// outcome of From is known.
	On string `json:"on,omitempty"`
	// OtherSuccess: On stands for each success except COMPLETED.
	OtherSuccess bool `json:"other_success,omitempty"`
}

// PlanPartitions are the partitions of a resumed step.
type PlanPartitions struct {
	Completed int `json:"completed"`
	// At most 100.
	Again   []PlanPartition `json:"again,omitempty"`
	Omitted int             `json:"omitted,omitempty"`
}

// PlanPartition is a partition that runs again.
type PlanPartition struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"` // as in PlanEntry
}

// StartLimit is a step that was attempted as often as its start_limit allows.
type StartLimit struct {
	Step     string `json:"step"`
	Attempts int    `json:"attempts"`
	Limit    int    `json:"limit"`
}

func restartPlan(ctx context.Context, records journal.Repository, exec *core.JobExecution, j *model.Job) (*RestartPlan, error) {
	planned, err := planner.New(ctx, records, j, exec, nil)
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

func planEntry(e planner.Entry) PlanEntry {
	entry := PlanEntry{Element: e.Element, Step: e.Step, Action: e.Act, Certainty: e.Certainty, Text: e.Text, If: e.If, MayRepeat: e.MayRepeat, OnWorkers: e.OnWorkers}
	if e.Act == PlanPass && e.Before != nil {
		entry.PassedBy, entry.Abandoned = e.Before.JobExecutionID, e.Before.Status == core.StatusAbandoned
	}
	for _, edge := range e.Via {
		entry.Via = append(entry.Via, PlanEdge(edge))
	}
	return entry
}

// IsDone reports whether the restart reaches the end of the flow without a step to run.
func (p *RestartPlan) IsDone() bool {
	return !slices.ContainsFunc(p.Entries, func(e PlanEntry) bool {
		return e.Action != PlanPass && e.Action != PlanSkip && e.Action != PlanFinally
	})
}

func isFinal(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}
