package core

import (
	"context"
	"math"
	"strconv"
)

// Visit is one visit of an element by the walk of a flow. Ordinal counts the visits of a flow from 1,
// over all attempts of the instance; 0 means that no walk visits the step, such as a partition. Flow is
// the log that the visit belongs to: empty for the job's own flow, else made by Visit.Inner.
type Visit struct {
	Flow    string `json:"flow,omitempty"`
	Ordinal int64  `json:"ordinal,omitempty"`
	Element string `json:"element,omitempty"`
}

// MaxFlowName bounds the name of a flow's log, in bytes: a row of the journal is found by it.
const MaxFlowName = 2000

// MaxElementName bounds the name of an element, in bytes.
const MaxElementName = 100

// LongestInner returns the longest possible name for the log of a branch of an element in the flow with
// that log.
func LongestInner(flow, element string, branch int) string {
	return Visit{Flow: flow, Ordinal: math.MaxInt64, Element: element}.Inner(branch)
}

// FlowPrefix returns the prefix of the log names of the flows inside the elements of a flow:
// FlowPrefix(flow) + ELEMENT + "#" + ORDINAL + "/" + BRANCH.
func FlowPrefix(flow string) string {
	if flow == "" {
		return ""
	}
	return flow + "/"
}

// Inner names the log of a flow inside the visited element, such as loadAll#3/1 for its second branch.
func (v Visit) Inner(branch int) string {
	return FlowPrefix(v.Flow) + v.Element + "#" + strconv.FormatInt(v.Ordinal, 10) + "/" + strconv.Itoa(branch)
}

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
	Visit
	Kind VisitKind
	// Verdict and Target depend on the kind.
	Verdict, Target string
}

// JournalRow is a row of the journal as a restart reads it.
type JournalRow struct {
	FlowVisit
	Execution JobExecutionID
	// Step is the step execution of a VisitStep; 0 for the other kinds.
	Step StepExecutionID
}

// Journal reads the visits of an instance's walks.
type Journal interface {
	// Visits returns, for each attempt from since on, flow, element and kind, the row of the greatest
	// ordinal, in no order. The rows of `finally` are left out.
	Visits(ctx context.Context, id JobInstanceID, since JobExecutionID) ([]JournalRow, error)
	// StepsByID returns the step executions with these ids, by id.
	StepsByID(ctx context.Context, ids []StepExecutionID) (map[StepExecutionID]StepExecution, error)
	// RecordVisits stores rows of the journal in the transaction that ctx carries for the repository's
	// database. Existing rows stay. recorded is false if ctx carries none, or a read-only one.
	RecordVisits(ctx context.Context, id JobExecutionID, rows []FlowVisit) (recorded bool, err error)
}

// FlowFinally is the log of the steps that run at the end of an execution.
const FlowFinally = "finally"

// StepStart requests a new step execution.
type StepStart struct {
	Name string
	// Visit is the step's visit in the flow.
	Visit Visit
	// Earlier is the attempt that the new one resumes; nil starts over.
	Earlier *StepExecution
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
