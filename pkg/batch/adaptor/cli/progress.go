package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// progressRecord is the progress of a running step, or of an execution none of
// whose steps runs at the moment.
type progressRecord struct {
	Execution int64  `json:"execution"`
	Job       string `json:"job"`
	Status    string `json:"status"`
	Attempt   int    `json:"attempt"`
	Step      string `json:"step,omitempty"`
	Read      int64  `json:"read"`
	Written   int64  `json:"written"`
	Filtered  int64  `json:"filtered"`
	Skipped   int64  `json:"skipped"`
	// PerSecond is how many items a second it reads (or writes, where it reads none)
	// since the last refresh; at first, since the step began.
	PerSecond float64 `json:"items_per_second"`
	// Percent and Left (seconds) are of the whole execution, by what the newest
	// completed executions of the job read and took; nil: there is none.
	Percent *float64 `json:"percent,omitempty"`
	Left    *float64 `json:"seconds_left,omitempty"`
	// Partitions and PartitionsDone are 0 for a step without partitions.
	Partitions     int         `json:"partitions,omitempty"`
	PartitionsDone int         `json:"partitions_completed,omitempty"`
	Duration       float64     `json:"duration"` // seconds since the execution started
	Owner          ownerRecord `json:"owner"`
	Lease          lease       `json:"lease"`
	StopRequested  bool        `json:"stop_requested,omitempty"`
}

// meter measures the progress of running executions from one refresh to the next.
type meter struct {
	history core.JobRepository
	now     func() time.Time
	leaseOf func(core.JobExecution) lease
	// last is where each step was at the last refresh.
	last map[core.StepExecutionID]measured
	// usual is what a job takes, asked once; nil: it never completed.
	usual map[string]*usual
	// before are the steps that earlier attempts completed, asked once for each
	// execution that is a restart.
	before map[core.JobExecutionID]map[string]bool
}

type measured struct {
	at   time.Time
	rows int64
}

func newMeter(history core.JobRepository, now func() time.Time, leaseOf func(core.JobExecution) lease) *meter {
	return &meter{
		history: history, now: now, leaseOf: leaseOf, last: map[core.StepExecutionID]measured{},
		usual: map[string]*usual{}, before: map[core.JobExecutionID]map[string]bool{},
	}
}

// mostRunning is how many running executions are watched.
const mostRunning = 200

// refresh reads what runs now: with a constant number of statements, but for what
// is asked once of a job or an execution that was not there before.
func (m *meter) refresh(ctx context.Context, jobName string) ([]progressRecord, error) {
	running, err := m.history.Executions(ctx, core.ExecutionFilter{
		JobName: jobName, Statuses: []core.Status{core.StatusStarting, core.StatusStarted, core.StatusStopping}, Limit: mostRunning,
	})
	if err != nil {
		return nil, fmt.Errorf("read what is running: %w", err)
	}
	steps, err := stepsOf(ctx, m.history, running)
	if err != nil {
		return nil, err
	}
	var records []progressRecord
	seen := map[core.StepExecutionID]measured{}
	for _, e := range running {
		if err := m.recall(ctx, e); err != nil {
			return nil, err
		}
		records = append(records, m.measure(e, steps[e.ID], seen)...)
	}
	m.last = seen // steps that ended are forgotten
	return records, nil
}

// stepsOf reads the steps of all executions, in one statement where the repository
// can.
func stepsOf(ctx context.Context, history core.JobRepository, executions []core.JobExecution) (map[core.JobExecutionID][]core.StepExecution, error) {
	ids := make([]core.JobExecutionID, len(executions))
	for i, e := range executions {
		ids[i] = e.ID
	}
	if insight, ok := history.(core.Insight); ok && len(ids) > 0 {
		return insight.StepsOf(ctx, ids...)
	}
	steps := map[core.JobExecutionID][]core.StepExecution{}
	for _, id := range ids {
		var err error
		if steps[id], err = history.Steps(ctx, id); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// measure makes a record for each running step of an execution.
func (m *meter) measure(e core.JobExecution, steps []core.StepExecution, seen map[core.StepExecutionID]measured) []progressRecord {
	now := m.now()
	base := progressRecord{
		Execution: int64(e.ID), Job: e.JobName, Status: string(e.Status), Attempt: e.Attempt,
		Duration: seconds(elapsed(e.StartedAt, e.EndedAt, now)), Lease: m.leaseOf(e), StopRequested: e.StopRequested || e.Status == core.StatusStopping,
		Owner: ownerRecord{Host: e.Owner.Host, PID: e.Owner.PID, LeaseUntil: timeRecord(e.LeaseUntil)},
	}
	var records []progressRecord
	f := forecast{usual: m.usual[e.JobName], passed: m.before[e.ID]}
	for _, s := range whole(steps) {
		if s.Status.IsOver() {
			f.ended(s.StepExecution)
			continue
		}
		r := base
		r.Step, r.Partitions, r.PartitionsDone = s.Name, s.parts, s.done
		c := s.counters
		r.Read, r.Written, r.Filtered, r.Skipped = c.Read, c.Write, c.Filter, c.Skips()
		r.PerSecond = m.speed(s, now, seen)
		f.running(s.Name, rowsOf(c), r.PerSecond, elapsed(s.StartedAt, time.Time{}, now))
		records = append(records, r)
	}
	if len(records) == 0 {
		records = append(records, base)
	}
	percent, left := f.result()
	for i := range records {
		records[i].Percent, records[i].Left = percent, left
	}
	return records
}

// speed is items per second since the last refresh, or since the step began.
func (m *meter) speed(s wholeStep, now time.Time, seen map[core.StepExecutionID]measured) float64 {
	rows := rowsOf(s.counters)
	seen[s.ID] = measured{now, rows}
	from, known := m.last[s.ID]
	if !known {
		from = measured{s.StartedAt, rowsOf(s.before)}
	}
	took := now.Sub(from.at).Seconds()
	if from.at.IsZero() || took <= 0 {
		return 0
	}
	return max(0, float64(int64(10*float64(rows-from.rows)/took))/10)
}

// wholeStep is a step with its partitions.
type wholeStep struct {
	core.StepExecution
	counters    core.Counters // of all attempts and partitions
	before      core.Counters // of earlier attempts
	parts, done int
}

// whole puts partitions to their steps, whose own counters follow at the end only.
func whole(steps []core.StepExecution) []wholeStep {
	var list []wholeStep
	place := map[string]int{}
	for _, s := range steps {
		name, _, isPart := strings.Cut(s.Name, ":")
		at, known := place[name]
		if isPart && known {
			if list[at].parts == 0 {
				list[at].counters, list[at].before = core.Counters{}, core.Counters{}
			}
			list[at].parts++
			list[at].counters, list[at].before = list[at].counters.Add(s.Total()), list[at].before.Add(s.Before)
			if s.Status == core.StatusCompleted {
				list[at].done++
			}
			continue
		}
		place[s.Name] = len(list)
		list = append(list, wholeStep{StepExecution: s, counters: s.Total(), before: s.Before})
	}
	return list
}
