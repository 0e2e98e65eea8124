package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// VisitKind is the kind of a journal row.
type VisitKind string

// The kinds of a visit.
const (
	VisitStep     VisitKind = "step"
	VisitNoop     VisitKind = "noop"
	VisitDecision VisitKind = "decision"
	VisitFlow     VisitKind = "flow"
	VisitGroup    VisitKind = "group"
	// VisitStop: a restart runs the element again. VisitJump goes to a restart point.
	VisitStop VisitKind = "stop"
	VisitJump VisitKind = "jump"
	// VisitPass is a completed step of an abandoned path, reached again and not run.
	VisitPass VisitKind = "pass"
	// VisitAdopt continues an earlier visit, its target, of an abandoned path.
	VisitAdopt VisitKind = "adopt"
	// VisitTurn ends earlier visits, from the first to the last ordinal in the target: the attempt
	// took another path.
	VisitTurn VisitKind = "turn"
)

// FlowVisit is a row of the journal: a visit that has no step execution.
type FlowVisit struct {
	core.Visit
	Kind            VisitKind
	Verdict, Target string
}

// JournalRow is a row of the journal as a restart reads it.
type JournalRow struct {
	FlowVisit
	Execution core.JobExecutionID
	// Step is 0 for other kinds than VisitStep.
	Step core.StepExecutionID
}

// Journal reads the visits of an instance's walks.
type Journal interface {
	// Visits returns, for each attempt from since on, flow, element and kind, the newest row,
	// without `finally`.
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]JournalRow, error)
	StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error)
	// RecordVisits stores rows in ctx's transaction; existing rows stay. recorded is false without
	// one, or in a read-only one.
	RecordVisits(ctx context.Context, id core.JobExecutionID, rows []FlowVisit) (recorded bool, err error)
}

// FlowFinally is the log of the steps that run at the end of an execution.
const FlowFinally = "finally"

// StepStart requests a new step execution.
type StepStart struct {
	Name  string
	Visit core.Visit
	// Earlier is the resumed attempt; nil starts over.
	Earlier *core.StepExecution
	Noop    bool
	// Always starts the step despite a stop request; implied for FlowFinally.
	Always bool
	Before []FlowVisit
	// Again: the reply was lost; the step may exist already.
	Again bool
}
