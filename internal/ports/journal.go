package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// VisitKind is the kind of a journal row.
type VisitKind string

// The kinds of a visit. A step's visit is its step execution; the others are rows of
// their own.
const (
	VisitStep VisitKind = "step"
	// VisitNoop is an element without a step and with a false condition.
	VisitNoop VisitKind = "noop"
	// VisitDecision has the decision's answer as its verdict.
	VisitDecision VisitKind = "decision"
	// VisitFlow is the end of a split or a flow, VisitGroup the end of an atomic group. Their verdict
	// is the status and the exit code.
	VisitFlow  VisitKind = "flow"
	VisitGroup VisitKind = "group"
	// VisitStop is a stop at the element: a restart runs the element again. VisitJump
	// is a stop with a restart point, the target.
	VisitStop VisitKind = "stop"
	VisitJump VisitKind = "jump"
	// VisitPass is a completed step of an abandoned path: the walk reached it again and did not run it.
	// The target is the ID of the step execution.
	VisitPass VisitKind = "pass"
	// VisitAdopt precedes the visit of an element with flows in it that continues an earlier visit, of
	// an abandoned path. The target names that visit.
	VisitAdopt VisitKind = "adopt"
	// VisitTurn ends visits of earlier attempts in the flow: the attempt took another path. The target
	// has the first and the last ordinal that it ends.
	VisitTurn VisitKind = "turn"
)

// FlowVisit is a row of the journal: a visit that has no step execution.
type FlowVisit struct {
	core.Visit
	Kind VisitKind
	// Verdict and Target depend on the kind.
	Verdict, Target string
}

// JournalRow is a row of the journal as a restart reads it.
type JournalRow struct {
	FlowVisit
	Execution core.JobExecutionID
	// Step is the step execution of a VisitStep; 0 for the other kinds.
	Step core.StepExecutionID
}

// Journal reads the visits of an instance's walks.
type Journal interface {
	// Visits returns, for each attempt from since on, flow, element and kind, the row of the greatest
	// ordinal, in no order. The rows of `finally` are left out.
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]JournalRow, error)
	// StepsByID returns the step executions with these ids, by id.
	StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error)
	// RecordVisits stores rows of the journal in the transaction that ctx carries for the repository's
	// database. Existing rows stay. recorded is false if ctx carries none, or a read-only one.
	RecordVisits(ctx context.Context, id core.JobExecutionID, rows []FlowVisit) (recorded bool, err error)
}

// FlowFinally is the log of the steps that run at the end of an execution.
const FlowFinally = "finally"

// StepStart requests a new step execution.
type StepStart struct {
	Name string
	// Visit is the step's visit in the flow.
	Visit core.Visit
	// Earlier is the attempt that the new one resumes; nil starts over.
	Earlier *core.StepExecution
	// Noop records a step with a false condition: COMPLETED with ExitNoop.
	Noop bool
	// Always starts the step although a stop was requested: a step of `finally`, or one that is
	// recorded again. StepStart of the flow FlowFinally need not set it.
	Always bool
	// Before are rows of the journal that are stored with the start: the visits before the step.
	Before []FlowVisit
	// Again means that the reply to the same request was lost: the step may exist already.
	Again bool
}
