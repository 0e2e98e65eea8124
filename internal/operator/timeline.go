package operator

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type timelines struct {
	judge   *judge
	records timelineRecords
}

type timelineRecords interface {
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
	ports.Spans
	PartPage(ctx context.Context, filter ports.PartFilter) ([]ports.ListedPart, error)
}

// TimelineRequest selects an instance by one of its executions.
type TimelineRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Of is an inspection of the execution, for a time line without parts, tasks and child jobs. May be nil.
	Of *Inspection `json:"-"`
}

// Timeline is when the work of all attempts of an instance began and ended.
type Timeline struct {
	Execution  core.JobExecutionID `json:"execution"`
	InstanceID core.JobInstanceID  `json:"instance"`
	JobName    string              `json:"job"`
	// From is when the oldest listed attempt was created. To is the end of the newest one, or now.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Lasts: the newest attempt is not over.
	Lasts bool `json:"lasts,omitempty"`
	// Spans are in the order of attempts and steps; after a step come its waits, parts, tasks and child
	// jobs, by start.
	Spans []Span `json:"spans"`
	// Lanes stand for parts and tasks that are not among the spans, because there would be more than
	// 2,000 of these.
	Lanes []Lane `json:"lanes,omitempty"`
	// Critical is nil if the newest attempt ran no step.
	Critical *CriticalPath `json:"critical,omitempty"`
	// Omitted is how many step executions and child jobs are in neither spans nor lanes: the oldest ones.
	Omitted int64 `json:"omitted,omitempty"`
}

// SpanKind is the kind of work of a span.
type SpanKind string

// The kinds.
const (
	SpanAttempt SpanKind = "attempt"
	SpanStep    SpanKind = "step"
	SpanPart    SpanKind = "part" // a partition, or a branch of a split, on a worker
	SpanTask    SpanKind = "task" // an attempt of a task
	SpanChild   SpanKind = "child"
	SpanWait    SpanKind = "wait"
)

// WaitKind is why work waited.
type WaitKind string

// The kinds: for a worker, before one had it or after one returned it; for parts, tasks or child jobs, without a process.
const (
	WaitQueued WaitKind = "queued"
	WaitParked WaitKind = "parked"
)

// Span is a stretch of time of some work.
type Span struct {
	Kind SpanKind `json:"kind"`
	// Name of the step, part, task or child job, of an attempt or of a step that waits: "attempt 2".
	Name    string `json:"name"`
	Attempt int    `json:"attempt"`
	// Execution is the attempt's; of a child job its own.
	Execution core.JobExecutionID `json:"execution"`
	// Step is the number of the step execution: of the step or the part, also if it waits.
	Step core.StepExecutionID `json:"step_execution,omitempty"`
	// Of is the step execution that the part, the task or the child job belongs to.
	Of core.StepExecutionID `json:"of,omitempty"`
	// Element is the element of the flow, if it has another name than the step. Flow is as in a StepView.
	Element string `json:"element,omitempty"`
	Flow    string `json:"flow,omitempty"`
	// Round is the number of this visit in a loop, from 1; 0 if it is the only one.
	Round int   `json:"round,omitempty"`
	Task  int64 `json:"task,omitempty"`
	// Try is the number of the task's attempt.
	Try  int      `json:"try,omitempty"`
	Wait WaitKind `json:"wait,omitempty"`
	// Status of the work, or the state of the task's attempt; empty for a wait, and if another worker has the part since.
	Status string `json:"status,omitempty"`
	// Lost: the worker lost the part; when is not known. With a status, no other has it yet.
	Lost bool `json:"lost,omitempty"`
	// Returned: the worker gave the part back.
	Returned bool `json:"returned,omitempty"`
	// Longest: one of the five longest of its step, if others are in lanes.
	Longest bool `json:"longest,omitempty"`

	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // absent while it lasts
	Duration float64   `json:"duration"`       // seconds, up to now while it lasts

	// Process had the work, or has it; Worker is its name, if the history knows it.
	Process *Process `json:"process,omitempty"`
	Worker  string   `json:"worker,omitempty"`

	Read     int64 `json:"read,omitempty"`
	Written  int64 `json:"written,omitempty"`
	Filtered int64 `json:"filtered,omitempty"`
	Skipped  int64 `json:"skipped,omitempty"`

	visit core.Visit
}

// Lane adds up the parts, or the tasks, of a step that one worker had.
type Lane struct {
	Kind      SpanKind             `json:"kind"` // part or task
	Name      string               `json:"name"` // of the step
	Attempt   int                  `json:"attempt"`
	Execution core.JobExecutionID  `json:"execution"`
	Of        core.StepExecutionID `json:"of"`
	// Process and Worker are as in a Span; neither: no worker had them yet.
	Process *Process `json:"process,omitempty"`
	Worker  string   `json:"worker,omitempty"`
	// Count includes those that are spans as well.
	Count    int            `json:"count"`
	Statuses map[string]int `json:"statuses"`
	// Lost and Returned are as in a Span; Count is without them.
	Lost     int       `json:"lost,omitempty"`
	Returned int       `json:"returned,omitempty"`
	Started  time.Time `json:"started,omitzero"` // of the first one
	Ended    time.Time `json:"ended,omitzero"`   // of the last one; absent while one lasts
	// Busy is the sum of the durations, and Waited how long they waited for a worker, in seconds.
	Busy     float64 `json:"busy"`
	Waited   float64 `json:"waited,omitempty"`
	Read     int64   `json:"read"`
	Written  int64   `json:"written"`
	Filtered int64   `json:"filtered"`
	Skipped  int64   `json:"skipped"`

	lasts bool
}

// Bounds of a time line: more parts and tasks than maxSpans are put in lanes.
const (
	maxSpans       = 2000
	mostAttempts   = 100
	maxStepRows    = 200_000
	spanPage       = 5000
	maxTaskSpans   = 20_000
	maxChildSpans  = 1000
	longestInLane  = 5
	failuresInLane = 100
	// leastWait is the shortest wait that is listed: a poll and a commit are no news.
	leastWait = 100 * time.Millisecond
)

// Timeline returns the spans of all attempts of an execution's instance, or core.ErrNotFound.
func (s *timelines) Timeline(ctx context.Context, req TimelineRequest) (*Timeline, error) {
	b, err := s.builder(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := b.read(ctx, s.records); err != nil {
		return nil, err
	}
	return b.timeline(), nil
}

func (s *timelines) builder(ctx context.Context, req TimelineRequest) (*timelineBuilder, error) {
	if req.Of == nil {
		exec, err := seen(ctx, s.records, req.Execution)
		if err != nil {
			return nil, err
		}
		return newTimelineBuilder(exec, s.judge), nil
	}
	b := newTimelineBuilder(&req.Of.exec, s.judge)
	b.brief = true
	return b, s.longest(ctx, b, req.Of.Parted())
}

// mostParted is how many steps with parts the brief time line asks for their longest part.
const mostParted = 3

// longest reads the longest part of the newest of the steps.
func (s *timelines) longest(ctx context.Context, b *timelineBuilder, steps []core.StepExecutionID) error {
	if len(steps) == 0 {
		return nil
	}
	var err error
	if b.names, err = s.records.WorkerNames(ctx); err != nil {
		return err
	}
	for _, step := range steps[max(0, len(steps)-mostParted):] {
		found, err := s.records.PartPage(ctx, ports.PartFilter{Manager: step, Order: ports.PartsByDuration, Limit: 1})
		if err != nil {
			return err
		}
		for i := range found {
			p := &found[i].Step
			span := b.span(p.Name, p.JobExecutionID, p.StartedAt, p.EndedAt)
			span.Step = p.ID
			b.owned(&span, p.Owner)
			b.longest[step] = span
		}
	}
	return nil
}
