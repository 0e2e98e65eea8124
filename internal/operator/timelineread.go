package operator

import (
	"context"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// timelineBuilder collects the spans of an instance. If they are too many, parts are added to lanes as
// they are read, so that 100,000 of them need little memory.
type timelineBuilder struct {
	exec     *core.JobExecution
	brief    bool // without parts, tasks and child jobs
	now      time.Time
	lost     func(worker core.Owner, until time.Time) bool
	names    map[core.Owner]string
	attempts map[core.JobExecutionID]*ports.AttemptSpan
	order    []core.JobExecutionID // of the attempts, oldest first
	omitted  int64

	held    map[core.JobExecutionID]bool // its holds are read
	holds   map[core.JobExecutionID][]ports.Hold
	ofStep  map[core.StepExecutionID][]ports.Hold
	planned map[core.StepExecutionID]time.Time

	steps   []Span // of the steps, by ID
	manager map[core.StepExecutionID]string
	rounds  map[roundOf]int
	inner   map[core.StepExecutionID][]Span // parts, tasks, child jobs and waits of a step
	parts   int                             // spans of parts in inner
	folds   bool
	lanes   *lanes
	longest map[core.StepExecutionID]Span // part of a step
	firsts  map[core.StepExecutionID]core.StepExecutionID
	parked  map[core.StepExecutionID]time.Duration
}

type roundOf struct {
	execution     core.JobExecutionID
	flow, element string
}

func newTimelineBuilder(exec *core.JobExecution, judge *judge) *timelineBuilder {
	now := judge.now()
	return &timelineBuilder{
		exec: exec, now: now, lost: judge.lost, attempts: map[core.JobExecutionID]*ports.AttemptSpan{}, held: map[core.JobExecutionID]bool{},
		holds: map[core.JobExecutionID][]ports.Hold{}, ofStep: map[core.StepExecutionID][]ports.Hold{}, planned: map[core.StepExecutionID]time.Time{},
		manager: map[core.StepExecutionID]string{}, rounds: map[roundOf]int{}, inner: map[core.StepExecutionID][]Span{}, lanes: newLanes(now),
		longest: map[core.StepExecutionID]Span{}, firsts: map[core.StepExecutionID]core.StepExecutionID{}, parked: map[core.StepExecutionID]time.Duration{},
	}
}

func (b *timelineBuilder) read(ctx context.Context, records timelineRecords) error {
	list, err := records.AttemptSpans(ctx, b.exec.InstanceID, mostAttempts)
	if err != nil {
		return err
	}
	if !b.brief {
		if b.names, err = records.WorkerNames(ctx); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(list, func(a ports.AttemptSpan) bool { return a.ID == b.exec.ID }) { // it is older than those
		e := b.exec
		list = append(list, ports.AttemptSpan{
			ID: e.ID, Attempt: e.Attempt, Status: e.Status, Owner: e.Owner, Resumed: true, Steps: spanPage, CreatedAt: e.CreatedAt, StartedAt: e.StartedAt, EndedAt: e.EndedAt,
		})
	}
	read := b.choose(list)
	for _, a := range read {
		if err := b.readSteps(ctx, records, a); err != nil {
			return err
		}
	}
	if b.brief {
		return nil
	}
	if err := b.readTasks(ctx, records); err != nil {
		return err
	}
	return b.readChildren(ctx, records)
}

// choose returns the attempts with steps that are read, oldest first: this one, and as many of the newest as fit.
func (b *timelineBuilder) choose(list []ports.AttemptSpan) []ports.AttemptSpan {
	var rows int64
	for i := range list {
		b.attempts[list[i].ID] = &list[i]
		if list[i].ID == b.exec.ID {
			rows = list[i].Steps
		}
	}
	var read []ports.AttemptSpan
	for _, a := range list {
		b.order = append(b.order, a.ID)
		switch {
		case a.ID == b.exec.ID:
			read = append(read, a)
		case rows+a.Steps > maxStepRows:
			b.omitted += a.Steps
		default:
			rows += a.Steps
			read = append(read, a)
		}
	}
	b.folds = rows > maxSpans
	slices.Reverse(b.order)
	slices.Reverse(read)
	return read
}

func (b *timelineBuilder) readSteps(ctx context.Context, records timelineRecords, a ports.AttemptSpan) error {
	if a.Resumed {
		if err := b.readHolds(ctx, records, a.ID); err != nil {
			return err
		}
	}
	read := records.StepSpans
	if b.brief {
		read = records.MainSpans
	}
	for after, more := core.StepExecutionID(0), true; more; {
		page, err := read(ctx, a.ID, after, spanPage)
		if err != nil {
			return err
		}
		for i := range page {
			if s := &page[i]; s.Manager != 0 && (s.Assigned > 0 || s.Owner == core.Owner{}) {
				if err := b.readHolds(ctx, records, a.ID); err != nil {
					return err
				}
			}
			b.addStep(&page[i])
		}
		if more = len(page) == spanPage; more {
			after = page[len(page)-1].ID
		}
	}
	return nil
}

func (b *timelineBuilder) readHolds(ctx context.Context, records timelineRecords, id core.JobExecutionID) error {
	if b.held[id] {
		return nil
	}
	b.held[id] = true
	for after, more := int64(0), true; more; {
		page, next, err := records.Holds(ctx, id, after)
		if err != nil {
			return err
		}
		for _, h := range page {
			switch {
			case h.Step == 0:
				b.holds[id] = append(b.holds[id], h)
			case h.Kind == ports.HoldPlan:
				b.planned[h.Step] = h.At
			default:
				b.ofStep[h.Step] = append(b.ofStep[h.Step], h)
			}
		}
		after, more = next, next != 0
	}
	return nil
}

// The tasks of the newest steps; a step without any costs one look-up in an index.
func (b *timelineBuilder) readTasks(ctx context.Context, records timelineRecords) error {
	newest := b.steps[max(0, len(b.steps)-maxSpans):]
	ids := make([]core.StepExecutionID, len(newest))
	for i := range newest {
		ids[i] = newest[i].Step
	}
	list, err := records.TaskSpans(ctx, ids, maxTaskSpans)
	if err != nil {
		return err
	}
	for i := range list {
		b.addTask(&list[i])
	}
	return nil
}

func (b *timelineBuilder) readChildren(ctx context.Context, records timelineRecords) error {
	list, err := records.ChildSpans(ctx, b.order, maxChildSpans+1)
	if err != nil {
		return err
	}
	if len(list) > maxChildSpans {
		b.omitted++
		list = list[:maxChildSpans]
	}
	for i := range list {
		b.addChild(&list[i])
	}
	return nil
}
