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

// The views are the service's results from the history. In JSON their keys are as in the job file's
// expressions (steps.NAME.read and so on). A view has no owner's nonce, and no text of a definition
// unless it was requested.
type (
	// ExecutionView is a job execution with its steps.
	ExecutionView struct {
		Execution
		// StopRequested means that a stop of a running execution was requested.
		StopRequested bool `json:"stop_requested,omitempty"`
		// RedrivenBy are the executions that redrive the skipped items of this one, newest first;
		// Redrives are the same with their statuses.
		RedrivenBy []core.JobExecutionID `json:"redriven_by,omitempty"`
		Redrives   []Redrive             `json:"-"`
		Steps      []StepView            `json:"steps,omitempty"`
		Decisions  []DecisionView        `json:"decisions,omitempty"`
		// Audit is empty unless it was requested.
		Audit []AuditView `json:"audit,omitempty"`
		// Definition has the job file and the files that it names, as they were when the execution
		// began, the job file first; empty unless it was requested.
		Definition []core.DefinitionFile `json:"definition,omitempty"`
	}

	// Redrive is an execution that redrives another's skipped items.
	Redrive struct {
		Execution core.JobExecutionID
		Status    core.Status
	}

	// StepView is a step execution: its counters cover this attempt.
	StepView struct {
		Step string `json:"step"`
		// Execution is the job execution that ran the step: an earlier one for a step that a
		// restart skipped because it was complete.
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
		// SkippedUndone is how many of Skipped were in the current chunk, which was rolled back:
		// they are not stored.
		SkippedUndone int64          `json:"skipped_undone,omitempty"`
		Commits       int64          `json:"commits"`
		Rollbacks     int64          `json:"rollbacks"`
		Started       time.Time      `json:"started,omitzero"`
		Ended         time.Time      `json:"ended,omitzero"`
		Duration      float64        `json:"duration"` // seconds
		RowsPerSecond float64        `json:"rows_per_second"`
		Gate          string         `json:"gate,omitempty"`
		Out           map[string]any `json:"out,omitempty"`
		// Child is the execution of the job that the step ran; 0 if it runs none.
		Child core.JobExecutionID `json:"child,omitempty"`
		// ChildStatus is its status if the step waits for it.
		ChildStatus core.Status `json:"child_status,omitempty"`
		// Tasks are the tasks that the step has submitted (Show only).
		Tasks *StepTasks `json:"tasks,omitempty"`
		// NewDefinition means that the step had another definition in the previous attempt, and
		// took its new one, because nothing was committed with the old one (rule F4a).
		NewDefinition bool `json:"new_definition,omitempty"`
		// Warnings are messages about a step that may complete, such as a column that it does not
		// read; they include its partitions' warnings.
		Warnings []string `json:"warnings,omitempty"`
		// Rounds is how often a loop ran the step in this execution, if more than once; counters
		// and duration then cover all rounds (Summary only).
		Rounds int `json:"rounds,omitempty"`
		// Worker is the process that has this partition, or nil.
		Worker *Owner `json:"worker,omitempty"`

		// The following are set by Explain only, with counters of all attempts that the step was
		// resumed from, as far as they committed. Kind is chunk, tasklet, ...
		Kind string `json:"kind,omitempty"`
		// Undone is the number of items read in the current chunk, which was rolled back.
		Undone int64 `json:"rolled_back_read,omitempty"`
		// Resumed means that there are such attempts.
		Resumed bool `json:"resumed,omitempty"`
		// CommittedIn is the database that has committed work that the history does not have yet: a
		// restart finds out how much (rule C18). CommitProblem is why that is unknown.
		CommittedIn   string `json:"committed_in,omitempty"`
		CommitProblem string `json:"commit_problem,omitempty"`
		// Position describes how far it is committed.
		Position string `json:"position,omitempty"`

		// Partitions are the partitions of a partitioned step.
		Partitions *PartitionsView `json:"partitions,omitempty"`
	}

	// PartitionsView are the partitions of a step.
	PartitionsView struct {
		Total    int                 `json:"total"`
		Statuses map[core.Status]int `json:"statuses"`
		// Branches means that they are the branches of a split on workers, by their numbers.
		Branches bool `json:"branches,omitempty"`
		// List has the partitions that failed, that workers have, or that a worker could not begin,
		// or all of them if requested. It has at most 100, unless all were requested; an
		// explanation lists the incomplete ones if there are more.
		List []StepView `json:"list"`
		// Omitted is how many more List would have: Show lists all partitions on request.
		Omitted int `json:"omitted,omitempty"`
	}

	// DecisionView is the recorded answer of a decision or of a condition.
	DecisionView struct {
		Kind    string `json:"kind"` // decide or when
		Element string `json:"element"`
		Verdict string `json:"verdict"`
	}

	// AuditView is a transition of a status, or an operator's act.
	AuditView struct {
		At    time.Time `json:"at"`
		Act   string    `json:"act"`
		Actor string    `json:"actor,omitempty"`
		// Step is the step execution of the entry, and StepName its name; if unset, the entry is
		// for the job execution.
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
		// JobName and Params, the identifying parameters, identify the instance.
		JobName string     `json:"job"`
		Params  Parameters `json:"parameters"`
		// Attempts, Execution, Status and ExitCode are its newest execution's; zero if all of its
		// executions were deleted.
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

// decisions returns, for each element, the newest answer of a decision, or condition that did not
// hold, in an execution and its earlier attempts.
func decisionsOf(ctx context.Context, records interface {
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error)
}, e *core.JobExecution) ([]DecisionView, error) {
	rows, err := records.Visits(ctx, e.InstanceID, e.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the journal of execution %d: %w", e.ID, err)
	}
	rows = slices.DeleteFunc(rows, func(r ports.JournalRow) bool {
		return r.Execution > e.ID || r.Kind != ports.VisitDecision && r.Kind != ports.VisitNoop
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
	return list, nil
}
