package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The defaults and bounds of a DayRequest.
const (
	DayBack    = 24 * time.Hour
	DayAhead   = 12 * time.Hour
	MaxDayJobs = 200

	defaultDayJobs = 30
	maxDayBack     = 31 * 24 * time.Hour
	// maxDayRuns is the number of ended executions that are read, and of running ones.
	maxDayRuns = 5_000
	// maxLaneRuns is the number of executions of a job that stay apart, and maxPlanned bounds its planned runs.
	maxLaneRuns = 60
	maxPlanned  = 50
	// laneSlots are the sums of a job with more executions.
	laneSlots = 96
)

// DayRequest bounds a time line of all jobs.
type DayRequest struct {
	// Back and Ahead are the times before and after now; 0 means 24 and 12 hours.
	Back  time.Duration `json:"back,omitempty"`
	Ahead time.Duration `json:"ahead,omitempty"`
	// Limit of jobs is at most MaxDayJobs; 0 means 30.
	Limit int `json:"limit,omitempty"`
}

// Day has the executions of all jobs in a window around now, and the runs that their schedules plan.
type Day struct {
	At   time.Time `json:"at"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Jobs have an execution or a planned run in the window, the most important first: the newest execution
	// failed, then running, with failed ones, due next, and the others by their newest execution.
	Jobs []DayJob `json:"jobs"`
	// Others are the sum of the jobs beyond the limit; nil means that there are none.
	Others *DayOthers `json:"others,omitempty"`
	// Complete is the time since which all executions that ended are known: after From if more than 5,000 ended.
	Complete time.Time `json:"complete_since"`
	// MoreRunning: more than 5,000 executions run, and only the oldest are here.
	MoreRunning bool `json:"more_running,omitempty"`
	// Problems are schedules that this program does not understand, by job.
	Problems map[string]string `json:"problems,omitempty"`
}

// DayJob is a job in a window of time.
type DayJob struct {
	Job string `json:"job"`
	// Statuses count its executions.
	Statuses map[core.Status]int `json:"statuses"`
	// Runs are its executions, the oldest first. Of more than 60 those that completed are added up.
	Runs []DayRun `json:"runs"`
	// Planned are the next runs of its schedule, at most 50; MorePlanned means that there are others.
	Planned     []ScheduledTime `json:"planned,omitempty"`
	MorePlanned bool            `json:"more_planned,omitempty"`
	// Usual is the median duration in seconds of the last completed executions, or 0.
	Usual float64 `json:"usual,omitempty"`
}

// DayRun is an execution, or the sum of several with the same status.
type DayRun struct {
	// Execution is the newest of them.
	Execution core.JobExecutionID `json:"execution"`
	Status    core.Status         `json:"status"`
	// Started is when it was created, if it has not started.
	Started time.Time `json:"started"`
	// Ended is zero while it runs.
	Ended time.Time `json:"ended,omitzero"`
	Count int       `json:"count"`
}

// DayOthers are the jobs that are not listed.
type DayOthers struct {
	Jobs     int                 `json:"jobs"`
	Statuses map[core.Status]int `json:"statuses"`
	// Planned counts their planned runs; MorePlanned means that there are others.
	Planned     int  `json:"planned"`
	MorePlanned bool `json:"more_planned,omitempty"`
}

// Day returns the time line of all jobs. It reads at most 5,000 executions that ended and 5,000 that run, and the
// definitions with a schedule (rule OP12).
func (s *agenda) Day(ctx context.Context, req DayRequest) (*Day, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("time line of all jobs: %w", err)
	}
	now := s.judge.now()
	d := &Day{At: utc(now), From: utc(now.Add(-req.Back)), To: utc(now.Add(req.Ahead)), Jobs: []DayJob{}}
	d.Complete = d.From
	jobs, err := s.dayRuns(ctx, d)
	if err != nil {
		return nil, err
	}
	list, err := s.scheduled(ctx, true)
	if err != nil {
		return nil, err
	}
	d.plan(jobs, list)
	for _, j := range jobs {
		if len(j.Runs)+len(j.Planned) > 0 {
			d.Jobs = append(d.Jobs, *j)
		}
	}
	d.cut(cmp.Or(req.Limit, defaultDayJobs))
	return d, s.finish(ctx, d)
}

func (r *DayRequest) check() error {
	switch {
	case r.Limit < 0 || r.Limit > MaxDayJobs:
		return &RequestError{Field: "limit", Value: fmt.Sprint(r.Limit), Reason: fmt.Sprintf("must be from 1 to %d", MaxDayJobs)}
	case r.Back < 0 || r.Back > maxDayBack:
		return &RequestError{Field: "back", Value: r.Back.String(), Reason: "must be at most 31 days"}
	case r.Ahead < 0 || r.Ahead > maxDayBack:
		return &RequestError{Field: "ahead", Value: r.Ahead.String(), Reason: "must be at most 31 days"}
	}
	r.Back, r.Ahead = cmp.Or(r.Back, DayBack), cmp.Or(r.Ahead, DayAhead)
	return nil
}

// dayRuns reads the executions of the window, by job.
func (s *agenda) dayRuns(ctx context.Context, d *Day) (map[string]*DayJob, error) {
	ended, err := patiently(ctx, func(ctx context.Context) ([]ports.RunSpan, error) {
		return s.history.EndedRuns(ctx, d.From, maxDayRuns+1)
	})
	if err != nil {
		return nil, err
	}
	active, err := patiently(ctx, func(ctx context.Context) ([]ports.RunSpan, error) { return s.history.ActiveRuns(ctx, maxDayRuns+1) })
	if err != nil {
		return nil, err
	}
	var more bool
	if ended, more = cutPage(ended, maxDayRuns+1); more {
		d.Complete = utc(ended[len(ended)-1].EndedAt)
	}
	active, d.MoreRunning = cutPage(active, maxDayRuns+1)
	jobs := map[string]*DayJob{}
	seen := make(map[core.JobExecutionID]bool, len(ended))
	for _, run := range slices.Concat(ended, active) {
		if seen[run.ID] { // it ended between the two statements
			continue
		}
		seen[run.ID] = true
		j := jobs[run.JobName]
		if j == nil {
			j = &DayJob{Job: run.JobName, Statuses: map[core.Status]int{}, Runs: []DayRun{}}
			jobs[run.JobName] = j
		}
		j.Statuses[run.Status]++
		j.Runs = append(j.Runs, DayRun{Execution: run.ID, Status: run.Status, Started: utc(run.StartedAt), Ended: utc(run.EndedAt), Count: 1})
	}
	for _, j := range jobs {
		slices.SortFunc(j.Runs, func(a, b DayRun) int {
			return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Execution, b.Execution))
		})
	}
	return jobs, nil
}

// plan adds the times of the schedules.
func (d *Day) plan(jobs map[string]*DayJob, list []taskports.Definition) {
	for _, of := range list {
		c, err := schedule.Of(*of.Schedule)
		if err != nil {
			if d.Problems == nil {
				d.Problems = map[string]string{}
			}
			d.Problems[of.Name] = err.Error()
			continue
		}
		times, more := timesBetween(c, d.At, d.To, maxPlanned)
		if len(times) == 0 {
			continue
		}
		j := jobs[of.Name]
		if j == nil {
			j = &DayJob{Job: of.Name, Statuses: map[core.Status]int{}, Runs: []DayRun{}}
			jobs[of.Name] = j
		}
		j.MorePlanned = more
		for _, t := range times {
			j.Planned = append(j.Planned, ScheduledTime{t.Key, t.At.In(c.Zone())})
		}
	}
}

// cut keeps the most important jobs, and adds up the others.
func (d *Day) cut(limit int) {
	slices.SortFunc(d.Jobs, func(a, b DayJob) int { return a.compare(&b) })
	if len(d.Jobs) <= limit {
		return
	}
	rest := d.Jobs[limit:]
	d.Jobs, d.Others = d.Jobs[:limit], &DayOthers{Jobs: len(rest), Statuses: map[core.Status]int{}}
	for _, j := range rest {
		for status, n := range j.Statuses {
			d.Others.Statuses[status] += n
		}
		d.Others.Planned += len(j.Planned)
		d.Others.MorePlanned = d.Others.MorePlanned || j.MorePlanned
	}
}

// The ranks of jobs.
const (
	rankFails = iota
	rankRuns
	rankFailed
	rankDue
	rankOver
)

func (j *DayJob) rank() int {
	running, failed := false, false
	for status, n := range j.Statuses {
		running = running || n > 0 && !status.IsOver()
		failed = failed || n > 0 && isFailure(status)
	}
	switch {
	case len(j.Runs) > 0 && isFailure(j.Runs[len(j.Runs)-1].Status):
		return rankFails
	case running:
		return rankRuns
	case failed:
		return rankFailed
	case len(j.Planned) > 0:
		return rankDue
	}
	return rankOver
}

// compare orders jobs by rank, then the next time first, or the newest execution.
func (j *DayJob) compare(other *DayJob) int {
	rank := j.rank()
	if c := cmp.Compare(rank, other.rank()); c != 0 {
		return c
	}
	if rank == rankDue {
		return cmp.Or(j.Planned[0].At.Compare(other.Planned[0].At), cmp.Compare(j.Job, other.Job))
	}
	return cmp.Or(other.Runs[len(other.Runs)-1].Started.Compare(j.Runs[len(j.Runs)-1].Started), cmp.Compare(j.Job, other.Job))
}

func isFailure(s core.Status) bool { return s == core.StatusFailed || s == core.StatusUnknown }

// finish adds usual durations, and adds up the executions of busy jobs.
func (s *agenda) finish(ctx context.Context, d *Day) error {
	names := make([]string, len(d.Jobs))
	for i := range d.Jobs {
		names[i] = d.Jobs[i].Job
		d.Jobs[i].Runs = summed(d.Jobs[i].Runs, d.From, d.At)
	}
	usual, err := s.usualOf(ctx, names...)
	for i := range d.Jobs {
		d.Jobs[i].Usual = usual[names[i]]
	}
	return err
}

// summed adds up the executions with the same status that began in the same part of the window, and leaves those
// apart that run, or else are among the last that failed.
func summed(runs []DayRun, from, to time.Time) []DayRun {
	if len(runs) <= maxLaneRuns {
		return runs
	}
	slot := max(to.Sub(from)/laneSlots, time.Second)
	type place struct {
		status core.Status
		slot   int64
	}
	at := map[place]int{}
	apart := maxLaneRuns
	var list []DayRun
	for _, run := range slices.Backward(runs) {
		if apart > 0 && (!run.Status.IsOver() || isFailure(run.Status)) {
			apart--
			list = append(list, run)
			continue
		}
		key := place{run.Status, int64(run.Started.Sub(from) / slot)}
		i, known := at[key]
		if !known {
			at[key], list = len(list), append(list, run)
			continue
		}
		sum := &list[i]
		sum.Count++
		sum.Started = run.Started
		if !sum.Ended.IsZero() && run.Ended.After(sum.Ended) {
			sum.Ended = run.Ended
		}
	}
	slices.Reverse(list)
	return list
}
