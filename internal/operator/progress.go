package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type progress struct {
	judge   *judge
	view    *viewer
	work    *workload
	jobs    *jobs
	records progressRecords
}

type progressRecords interface {
	journal.Repository
	Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	ExecutionIDs(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecutionID, error)
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
	StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error)
}

// ProgressView is the progress of a running step, or of an execution without
// one.
type ProgressView struct {
	Execution core.JobExecutionID `json:"execution"`
	JobName   string              `json:"job"`
	Status    core.Status         `json:"status"`
	Attempt   int                 `json:"attempt"`
	Step      string              `json:"step,omitempty"`
	// All attempts and partitions count.
	Read     int64 `json:"read"`
	Written  int64 `json:"written"`
	Filtered int64 `json:"filtered"`
	Skipped  int64 `json:"skipped"`
	// PerSecond is since the last refresh, or since the step began. Items
	// written count if it reads none.
	PerSecond float64 `json:"items_per_second"`
	// Percent and Left (seconds) are for the whole execution, estimated from
	// the newest completed ones; nil if unknown.
	Percent *float64 `json:"percent,omitempty"`
	Left    *float64 `json:"seconds_left,omitempty"`
	// 0 without partitions.
	Partitions     int        `json:"partitions,omitempty"`
	PartitionsDone int        `json:"partitions_completed,omitempty"`
	Tasks          *StepTasks `json:"tasks,omitempty"`
	// Child is the execution of the job that the step waits for.
	Child         core.JobExecutionID `json:"child,omitempty"`
	ChildStatus   core.Status         `json:"child_status,omitempty"`
	Waiting       *Waiting            `json:"waiting,omitempty"`
	Placed        []PlacedWork        `json:"placed,omitempty"`
	Duration      float64             `json:"duration"` // seconds since the execution started
	Owner         *Owner              `json:"owner,omitempty"`
	Lease         Lease               `json:"lease,omitempty"`
	StopRequested bool                `json:"stop_requested,omitempty"`
}

// ProgressRequest selects running executions.
type ProgressRequest struct {
	Job string `json:"job,omitempty"` // empty means all jobs
}

// Progress returns the progress of running executions. Speeds are since their
// steps began.
func (s *progress) Progress(ctx context.Context, req ProgressRequest) ([]ProgressView, error) {
	return s.Meter(req).Refresh(ctx)
}

// Meter measures running executions from one refresh to the next. It must not
// be used concurrently.
type Meter struct {
	*progress
	request ProgressRequest
	last    map[core.StepExecutionID]measured
	// nil means never completed.
	baselines map[string]*baseline
	earlier   map[core.JobExecutionID]*earlier
}

type measured struct {
	at   time.Time
	rows int64
}

// Meter makes a meter.
func (s *progress) Meter(req ProgressRequest) *Meter {
	return &Meter{
		progress: s, request: req, last: map[core.StepExecutionID]measured{},
		baselines: map[string]*baseline{}, earlier: map[core.JobExecutionID]*earlier{},
	}
}

const maxRunning = 200

// Refresh reads the running executions with a bounded number of statements.
func (m *Meter) Refresh(ctx context.Context) ([]ProgressView, error) {
	ids, err := m.records.ExecutionIDs(ctx, ports.ExecutionFilter{
		JobName: m.request.Job, Statuses: ports.ActiveStatuses(), Limit: maxRunning,
	})
	if err != nil {
		return nil, fmt.Errorf("read the running executions: %w", err)
	}
	running, err := m.records.Judged(ctx, ports.JudgedRequest{IDs: ids, Dead: m.judge.dead})
	if err != nil {
		return nil, fmt.Errorf("read the running executions: %w", err)
	}
	steps, err := m.records.StepsOf(ctx, ids...)
	if err != nil {
		return nil, err
	}
	waiting, err := m.work.waiting(ctx, running)
	if err != nil {
		return nil, err
	}
	placed, err := m.work.placed(ctx, running)
	if err != nil {
		return nil, err
	}
	work, err := m.work.stepWork(ctx, steps)
	if err != nil {
		return nil, err
	}
	views := []ProgressView{}
	seen := map[core.StepExecutionID]measured{}
	for i := range running {
		e := &running[i].Execution
		if e.Status.IsOver() { // since its ID was read
			continue
		}
		if err := m.loadBaseline(ctx, e); err != nil {
			return nil, err
		}
		for _, view := range m.measure(e, running[i].Newest, steps[e.ID], work, seen) {
			view.Waiting, view.Placed = waiting[e.ID], placed[e.ID]
			views = append(views, view)
		}
	}
	m.last = seen // steps that ended are forgotten
	return views, nil
}

func (s *progress) stepsOf(ctx context.Context, executions []core.JobExecution) (map[core.JobExecutionID][]core.StepExecution, error) {
	ids := make([]core.JobExecutionID, len(executions))
	for i, e := range executions {
		ids[i] = e.ID
	}
	return s.records.StepsOf(ctx, ids...)
}

func (m *Meter) measure(e *core.JobExecution, newest ports.NewestAttempt, steps []core.StepExecution, work ports.StepWork, seen map[core.StepExecutionID]measured) []ProgressView {
	return m.measureSteps(e, newest, splitPartitions(steps), work, seen)
}

func (m *Meter) measureSteps(e *core.JobExecution, newest ports.NewestAttempt, steps []partitioned, work ports.StepWork, seen map[core.StepExecutionID]measured) []ProgressView {
	now := m.judge.now()
	base := ProgressView{
		Execution: e.ID, JobName: e.JobName, Status: e.Status, Attempt: e.Attempt,
		Duration:      seconds(elapsed(e.StartedAt, e.EndedAt, now)),
		StopRequested: e.StopRequested || e.Status == core.StatusStopping,
		Owner:         m.view.ownerOf(e, &newest),
	}
	base.Lease = leaseOf(base.Owner)
	var views []ProgressView
	f := newForecast(m.baselines[e.JobName], m.earlier[e.ID])
	for _, s := range steps {
		if s.Status.IsOver() {
			f.ended(s.Name)
			continue
		}
		view := base
		view.Step, view.Partitions, view.PartitionsDone = s.Name, s.count(), s.completed()
		view.Tasks = tasksOf(s.StepExecution, work)
		view.Child, view.ChildStatus = childOf(s.StepExecution, work)
		c, before := s.total()
		view.Read, view.Written, view.Filtered, view.Skipped = c.Read, c.Write, c.Filter, c.Skips()
		view.PerSecond = m.speed(s.StepExecution, c.Rows(), before.Rows(), now, seen)
		f.runs(s.Name, c.Rows(), view.PerSecond, elapsed(s.StartedAt, time.Time{}, now))
		views = append(views, view)
	}
	if len(views) == 0 {
		views = append(views, base)
	}
	percent, left := f.result()
	for i := range views {
		views[i].Percent, views[i].Left = percent, left
	}
	return views
}

func (m *Meter) speed(s *core.StepExecution, rows, before int64, now time.Time, seen map[core.StepExecutionID]measured) float64 {
	seen[s.ID] = measured{now, rows}
	from, known := m.last[s.ID]
	if !known {
		from = measured{s.StartedAt, before}
	}
	took := now.Sub(from.at).Seconds()
	if from.at.IsZero() || took <= 0 {
		return 0
	}
	return max(0, float64(int64(10*float64(rows-from.rows)/took))/10)
}
