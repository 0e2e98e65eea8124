package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The views are the service's results. JSON keys are as in the job file's
// expressions. A view has no owner's nonce, and a definition's text only if
// requested.
type (
	// ExecutionView is a job execution with its steps.
	ExecutionView struct {
		Execution
		StopRequested bool `json:"stop_requested,omitempty"`
		// RedrivenBy are the executions that redrive its skipped items, newest
		// first.
		RedrivenBy []core.JobExecutionID `json:"redriven_by,omitempty"`
		Redrives   []Redrive             `json:"-"`
		Steps      []StepView            `json:"steps,omitempty"`
		Decisions  []DecisionView        `json:"decisions,omitempty"`
		// Audit is set if requested.
		Audit []AuditView `json:"audit,omitempty"`
		// Acts are the acts on executions of its instance and on their redrives, oldest first; with Audit.
		Acts []ActView `json:"acts,omitempty"`
		// Definition is as it was at the start, the job file first; set if
		// requested.
		Definition []core.DefinitionFile `json:"definition,omitempty"`
	}

	// Redrive is an execution that redrives skipped items of another, Of.
	Redrive struct {
		Execution, Of core.JobExecutionID
		Status        core.Status
	}

	// StepView is a step execution of this attempt.
	StepView struct {
		Step string `json:"step"`
		// ID is the number of the step execution.
		ID core.StepExecutionID `json:"step_execution"`
		// Element is the element of the flow, if it has another name than the step.
		Element string `json:"element,omitempty"`
		// Flow is the flow inside of a visited element: loadAll#3/1 is the second
		// branch in its visit 3; finally has the steps of the end.
		Flow string `json:"flow,omitempty"`
		// Round is the number of this visit in a loop, from 1; 0 if it is the only one (Show only).
		Round int `json:"round,omitempty"`
		// Execution is an earlier one for a step that a restart passed.
		Execution    core.JobExecutionID `json:"execution"`
		Status       core.Status         `json:"status"`
		Exit         string              `json:"exit,omitempty"`
		Error        string              `json:"error,omitempty"`
		Read         int64               `json:"read"`
		Written      int64               `json:"written"`
		Filtered     int64               `json:"filtered"`
		Skipped      int64               `json:"skipped"`
		ReadSkipped  int64               `json:"read_skipped"`
		ProcessSkip  int64               `json:"process_skipped"`
		WriteSkipped int64               `json:"write_skipped"`
		// SkippedUndone of Skipped were rolled back, and are not stored.
		SkippedUndone int64          `json:"skipped_undone,omitempty"`
		Commits       int64          `json:"commits"`
		Rollbacks     int64          `json:"rollbacks"`
		Started       time.Time      `json:"started,omitzero"`
		Ended         time.Time      `json:"ended,omitzero"`
		Duration      float64        `json:"duration"` // seconds
		RowsPerSecond float64        `json:"rows_per_second"`
		Gate          string         `json:"gate,omitempty"`
		Out           map[string]any `json:"out,omitempty"`
		// Child is the execution of the job that the step ran, or 0.
		Child       core.JobExecutionID `json:"child,omitempty"`
		ChildStatus core.Status         `json:"child_status,omitempty"`
		// Tasks: Show only.
		Tasks *StepTasks `json:"tasks,omitempty"`
		// NewDefinition: the step took a new definition, because nothing was
		// committed with the old one (rule F4a).
		NewDefinition bool `json:"new_definition,omitempty"`
		// Warnings include the partitions'.
		Warnings []string `json:"warnings,omitempty"`
		// Rounds is how often a loop ran the step, if more than once (Summary
		// only).
		Rounds int `json:"rounds,omitempty"`
		// Worker has this partition.
		Worker *Owner `json:"worker,omitempty"`
		// Process had the step, or has it.
		Process *Process `json:"process,omitempty"`

		// The following are set by Explain only, with committed counters of all
		// resumed attempts.
		Kind string `json:"kind,omitempty"`
		// Undone items were read in the chunk that was rolled back.
		Undone  int64 `json:"rolled_back_read,omitempty"`
		Resumed bool  `json:"resumed,omitempty"`
		// CommittedIn is the database with committed work that the history
		// lacks (rule C18). CommitProblem is why that is unknown.
		CommittedIn   string `json:"committed_in,omitempty"`
		CommitProblem string `json:"commit_problem,omitempty"`
		Position      string `json:"position,omitempty"`

		Partitions *PartitionsView `json:"partitions,omitempty"`
	}

	// Process is a process on a host.
	Process struct {
		Host string `json:"host"`
		PID  int    `json:"pid"`
	}

	// PartitionsView are the partitions of a step.
	PartitionsView struct {
		Total    int                 `json:"total"`
		Statuses map[core.Status]int `json:"statuses"`
		// Branches: of a split on workers, by number.
		Branches bool `json:"branches,omitempty"`
		// List has the failed, held or refused ones, at most 100, or if requested
		// the first 1,000 of all; an explanation lists the incomplete ones.
		List    []StepView `json:"list"`
		Omitted int        `json:"omitted,omitempty"`
	}

	// DecisionView is the recorded answer of a decision or of a condition.
	DecisionView struct {
		Kind    string `json:"kind"` // decide or when
		Element string `json:"element"`
		Verdict string `json:"verdict"`
	}

	// AuditView is a change of status, or an operator's act.
	AuditView struct {
		At    time.Time `json:"at"`
		Act   string    `json:"act"`
		Actor string    `json:"actor,omitempty"`
		// Without Step the entry is for the job execution.
		Step     core.StepExecutionID `json:"step,omitempty"`
		StepName string               `json:"step_name,omitempty"`
		From     core.Status          `json:"from,omitempty"`
		To       core.Status          `json:"to,omitempty"`
		Epoch    int64                `json:"epoch,omitempty"`
		Detail   string               `json:"detail,omitempty"`
	}

	// InstanceView is a job instance with its newest execution.
	InstanceView struct {
		ID core.JobInstanceID `json:"instance"`
		// Params are the identifying ones.
		JobName string     `json:"job"`
		Params  Parameters `json:"parameters"`
		// Of its newest execution; zero if all were deleted.
		Attempts  int                 `json:"attempts"`
		Execution core.JobExecutionID `json:"execution"`
		Status    core.Status         `json:"status"`
		ExitCode  string              `json:"exit,omitempty"`
	}
)

func (s *StepView) count(c core.Counters) {
	s.Read, s.Written, s.Filtered, s.Skipped = c.Read, c.Write, c.Filter, c.Skips()
	s.ReadSkipped, s.ProcessSkip, s.WriteSkipped = c.ReadSkip, c.ProcessSkip, c.WriteSkip
	s.Commits, s.Rollbacks = c.Commit, c.Rollback
}

func (s *StepView) measure(c core.Counters, took time.Duration) {
	s.Duration, s.RowsPerSecond = seconds(took), 0
	if took > 0 {
		s.RowsPerSecond = float64(int64(float64(c.Rows()) / took.Seconds()))
	}
}

func decisionsOf(ctx context.Context, records interface {
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error)
}, e *core.JobExecution) ([]DecisionView, error) {
	rows, err := records.Visits(ctx, e.InstanceID, e.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the journal of execution %d: %w", e.ID, err)
	}
	return decisionsIn(rows, e.ID), nil
}

// decisionsIn are the last decisions up to an execution, and the conditions that did not hold.
func decisionsIn(visits []ports.JournalRow, id core.JobExecutionID) []DecisionView {
	rows := slices.DeleteFunc(slices.Clone(visits), func(r ports.JournalRow) bool {
		return r.Execution > id || r.Kind != ports.VisitDecision && r.Kind != ports.VisitNoop
	})
	slices.SortFunc(rows, func(a, b ports.JournalRow) int {
		return cmp.Or(cmp.Compare(b.Execution, a.Execution), strings.Compare(b.Flow, a.Flow), cmp.Compare(b.Ordinal, a.Ordinal))
	})
	seen := map[string]bool{}
	var list []DecisionView
	for _, r := range rows {
		if seen[r.Element] {
			continue
		}
		seen[r.Element] = true
		view := DecisionView{Kind: "decide", Element: r.Element, Verdict: r.Verdict}
		if r.Kind == ports.VisitNoop {
			view.Kind, view.Verdict = "when", "false"
		}
		list = append(list, view)
	}
	slices.Reverse(list)
	return list
}
