package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// MaxScheduleTimes is the largest page of a ScheduleTimesRequest.
const MaxScheduleTimes = 200

// maxScheduleActs is the number of acts that one view reads.
const maxScheduleActs = 20_000

// ScheduleTimesRequest selects the times of a schedule.
type ScheduleTimesRequest struct {
	Job string `json:"job"`
	// Before selects earlier times: Next of the previous page, which has no times to come; zero means now.
	Before time.Time `json:"before,omitzero"`
	// Ahead is the number of times to come, at most MaxScheduleTimes; 0 means 5.
	Ahead int `json:"ahead,omitempty"`
	// Limit of past times is at most MaxScheduleTimes; 0 means 50.
	Limit int `json:"limit,omitempty"`
}

// ScheduleTimes are the times of a schedule, with the outcomes of the past ones.
type ScheduleTimes struct {
	Job string `json:"job"`
	taskports.Schedule
	At      time.Time `json:"at"`
	Enabled bool      `json:"enabled"`
	// Usual is the median duration in seconds of the last completed executions, or 0.
	Usual float64 `json:"usual,omitempty"`
	// Coming are the next times, the first one first.
	Coming []PlannedTime `json:"coming,omitempty"`
	// Past is a page of the times up to now, the newest first.
	Past []PlannedTime `json:"past"`
	// Next is the key of the next page; zero means the last page.
	Next time.Time `json:"next,omitzero"`
	// Since is when the job was registered, or its times changed last: earlier times are not listed.
	Since time.Time `json:"since"`
	// Error is why this program does not understand the schedule: there are no times then.
	Error string `json:"error,omitempty"`
}

// TimeOutcome is the fate of a scheduled time.
type TimeOutcome string

// The outcomes of scheduled times.
const (
	TimePlanned  TimeOutcome = "planned"  // it is to come
	TimeDue      TimeOutcome = "due"      // a worker submits it next
	TimeWaiting  TimeOutcome = "waiting"  // its task waits
	TimeStarted  TimeOutcome = "started"  // its task has run the job
	TimeNotRun   TimeOutcome = "not_run"  // its task ended without an execution
	TimeLeftOut  TimeOutcome = "left_out" // an earlier run was not over
	TimeMissed   TimeOutcome = "missed"   // no worker led in time
	TimeDisabled TimeOutcome = "disabled" // the schedule was disabled
	TimeUnknown  TimeOutcome = "unknown"  // the history does not know it any more
)

// The kinds of local times that a clock change skips or repeats, and the lateness that does not count.
const (
	ClockSkips  = schedule.ClockSkips
	ClockFirst  = schedule.ClockFirst
	ClockSecond = schedule.ClockSecond
	OnTime      = schedule.OnTime
)

// PlannedTime is a scheduled time with its run.
type PlannedTime struct {
	ScheduledTime
	// Clock is set if a clock change skips the local time (it is due at the end of the gap), or repeats it.
	Clock schedule.Clock `json:"clock,omitempty"`
	// Outcome is empty if it was not looked up.
	Outcome TimeOutcome `json:"outcome,omitempty"`
	// Text is the outcome as a sentence: package wording writes it for the clients.
	Text string `json:"text"`
	Task int64  `json:"task,omitempty"`
	// Execution is the newest of Attempts, with its status. Started is when the first one began, and Ended when the
	// newest one ended.
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Attempts  int                 `json:"attempts,omitempty"`
	Status    core.Status         `json:"status,omitempty"`
	Started   time.Time           `json:"started,omitzero"`
	Ended     time.Time           `json:"ended,omitzero"`
	// Late is how many seconds after the time its run began or, if it has not begun, how late it is now.
	Late float64 `json:"late,omitempty"`
	// Reason is the error of its task, or the scheduler's reason to leave it out, at Decided.
	Reason  string    `json:"reason,omitempty"`
	Decided time.Time `json:"decided,omitzero"`
}

// ScheduleTimes returns the times of a registered job, with the outcome of the past ones (rule OP12).
func (s *agenda) ScheduleTimes(ctx context.Context, req ScheduleTimesRequest) (*ScheduleTimes, error) {
	if err := s.readyFor(ctx, &req); err != nil {
		return nil, err
	}
	d, err := patiently(ctx, func(ctx context.Context) (taskports.Definition, error) { return s.registered.Definition(ctx, req.Job) })
	if err != nil {
		return nil, notRegistered(err, req.Job)
	}
	if d.Schedule == nil {
		return nil, &RequestError{Field: "job", Value: req.Job, Reason: "it has no schedule"}
	}
	now := s.judge.now()
	view := &ScheduleTimes{Job: d.Name, Schedule: *d.Schedule, At: utc(now), Enabled: d.Enabled, Since: utc(d.CreatedAt), Past: []PlannedTime{}}
	c, err := schedule.Of(*d.Schedule)
	if err != nil {
		view.Error = err.Error()
		return view, nil
	}
	if err := s.fillTimes(ctx, view, d, c, req); err != nil {
		return nil, err
	}
	usual, err := s.usualOf(ctx, d.Name)
	view.Usual = usual[d.Name]
	return view, err
}

func (s *agenda) fillTimes(ctx context.Context, view *ScheduleTimes, d taskports.Definition, c *schedule.Cron, req ScheduleTimesRequest) error {
	now := view.At
	before := now.Add(time.Nanosecond)
	if !req.Before.IsZero() && req.Before.Before(before) {
		before = req.Before
	}
	past, more := c.Last(d.CreatedAt, before, req.Limit)
	lanes := []plannedLane{{of: d, cron: c, times: past}}
	if err := s.outcomes(ctx, lanes, now); err != nil {
		return err
	}
	lane := &lanes[0]
	view.Since = utc(lane.since)
	for _, t := range slices.Backward(lane.planned) {
		view.Past = append(view.Past, t)
	}
	if more && len(lane.planned) == len(past) {
		view.Next = utc(past[0].At)
	}
	if req.Before.IsZero() && d.Enabled {
		coming, _ := timesBetween(c, now.Add(time.Nanosecond), now.AddDate(farAhead, 0, 0), req.Ahead)
		for _, t := range coming {
			view.Coming = append(view.Coming, plannedTime(c, t))
		}
	}
	return nil
}

// farAhead is how many years the next times are searched.
const farAhead = 100

func (s *agenda) readyFor(ctx context.Context, r *ScheduleTimesRequest) error {
	const ahead = 5
	switch {
	case r.Limit < 0 || r.Limit > MaxScheduleTimes:
		return &RequestError{Field: "limit", Value: fmt.Sprint(r.Limit), Reason: fmt.Sprintf("must be from 1 to %d", MaxScheduleTimes)}
	case r.Ahead < 0 || r.Ahead > MaxScheduleTimes:
		return &RequestError{Field: "ahead", Value: fmt.Sprint(r.Ahead), Reason: fmt.Sprintf("must be from 1 to %d", MaxScheduleTimes)}
	case s.registered == nil:
		return errNoDefinitions
	}
	r.Limit, r.Ahead = cmp.Or(r.Limit, defaultLimit), cmp.Or(r.Ahead, ahead)
	return s.ready(ctx)
}

func plannedTime(c *schedule.Cron, t schedule.Time) PlannedTime {
	return PlannedTime{ScheduledTime: ScheduledTime{t.Key, t.At.In(c.Zone())}, Clock: c.Clock(t), Outcome: TimePlanned}
}

// plannedLane is a schedule with some of its times, in order.
type plannedLane struct {
	of    taskports.Definition
	cron  *schedule.Cron
	times []schedule.Time
	// planned are the times with their outcomes, without those before since.
	planned []PlannedTime
	// since is when the job was registered, or its times changed last as far as acts were read.
	since time.Time
}

// outcomes fills in planned: two statements for the runs, and one for acts if a past time has none.
func (s *agenda) outcomes(ctx context.Context, lanes []plannedLane, now time.Time) error {
	var keys []ports.ScheduledKey
	for i := range lanes {
		for _, t := range lanes[i].times {
			if !t.At.After(now) {
				keys = append(keys, ports.ScheduledKey{Definition: lanes[i].of.ID, Key: t.Key})
			}
		}
	}
	runs, err := patiently(ctx, func(ctx context.Context) (map[ports.ScheduledKey]ports.ScheduledRun, error) {
		return s.history.ScheduledRuns(ctx, keys...)
	})
	if err != nil {
		return err
	}
	var acts map[string][]ports.Act
	if len(runs) < len(keys) {
		if acts, err = s.decidingActs(ctx, lanes, runs, now); err != nil {
			return err
		}
	}
	for i := range lanes {
		lanes[i].judge(runs, acts, now)
	}
	return nil
}

// decidingActs reads the acts on schedules since the first time without a run, by job.
func (s *agenda) decidingActs(ctx context.Context, lanes []plannedLane, runs map[ports.ScheduledKey]ports.ScheduledRun, now time.Time) (map[string][]ports.Act, error) {
	first := now
	for i := range lanes {
		for _, t := range lanes[i].times {
			if _, has := runs[ports.ScheduledKey{Definition: lanes[i].of.ID, Key: t.Key}]; !has && t.At.Before(first) {
				first = t.At
				break
			}
		}
	}
	list, err := patiently(ctx, func(ctx context.Context) (list []ports.Act, err error) {
		return s.history.ScheduleActs(ctx, first, maxScheduleActs)
	})
	acts := map[string][]ports.Act{}
	for _, a := range list {
		acts[a.JobName] = append(acts[a.JobName], a)
	}
	return acts, err
}

// judge fills in planned.
func (l *plannedLane) judge(runs map[ports.ScheduledKey]ports.ScheduledRun, acts map[string][]ports.Act, now time.Time) {
	l.since = l.of.CreatedAt
	for _, a := range acts[l.of.Name] {
		if a.Verb == ports.VerbRegister && strings.HasSuffix(a.Detail, ports.OtherTimes) && a.At.After(l.since) {
			l.since = a.At
		}
	}
	undecided := l.undecided(now)
	for _, t := range l.times {
		p := plannedTime(l.cron, t)
		run, has := runs[ports.ScheduledKey{Definition: l.of.ID, Key: t.Key}]
		switch {
		case t.At.After(now):
		case has:
			p.ran(run, now)
		case !t.At.After(l.since):
			continue
		case t.At.After(l.of.ScheduledUntil):
			p.Outcome = TimeMissed
			if !l.of.Enabled {
				p.Outcome = TimeDisabled
			} else if undecided[t.Key] {
				p.Outcome, p.Late = TimeDue, seconds(now.Sub(t.At))
			}
		default:
			p.decidedBy(acts[l.of.Name], l.cron)
		}
		l.planned = append(l.planned, p)
	}
}

// undecided returns the keys that a worker submits next.
func (l *plannedLane) undecided(now time.Time) map[string]bool {
	keys := map[string]bool{}
	if due, err := l.cron.Due(l.of.ScheduledUntil, now, schedule.CatchUp(l.of.Schedule.CatchUp)); err == nil {
		for _, t := range due.Times {
			keys[t.Key] = true
		}
	}
	return keys
}

func (p *PlannedTime) ran(run ports.ScheduledRun, now time.Time) {
	p.Task, p.Attempts, p.Reason = run.Task, len(run.Attempts), run.Error
	if p.Attempts == 0 {
		p.Outcome, p.Late = TimeWaiting, seconds(now.Sub(p.At))
		if state := task.State(run.State); state.IsOver() {
			p.Outcome, p.Late, p.Reason = TimeNotRun, 0, cmp.Or(run.Error, strings.ToLower(run.State))
		}
		return
	}
	first, newest := run.Attempts[0], run.Attempts[len(run.Attempts)-1]
	p.Outcome, p.Execution, p.Status, p.Ended = TimeStarted, newest.ID, newest.Status, utc(newest.EndedAt)
	p.Started = utc(first.StartedAt)
	p.Late = max(0, seconds(p.Started.Sub(p.At)))
	if newest.Status == core.StatusCompleted {
		p.Reason = ""
	}
}

// decidedBy finds the act that decided about the time: the first one after it. If that act was about other times,
// the run was submitted, and is deleted by now.
func (p *PlannedTime) decidedBy(acts []ports.Act, c *schedule.Cron) {
	p.Outcome = TimeUnknown
	for _, a := range acts {
		if a.At.Before(p.At) || !slices.Contains([]string{ports.VerbEnable, ports.VerbDisable, ports.VerbLeaveOut}, a.Verb) {
			continue
		}
		switch {
		case a.Verb == ports.VerbEnable:
			p.Outcome = TimeDisabled
		case a.Verb == ports.VerbDisable:
			return
		case listsKey(a.Detail, p.Key):
			p.Outcome, p.Reason = TimeLeftOut, a.Detail
		case p.isMissed(a, c):
			p.Outcome, p.Reason = TimeMissed, a.Detail
		default:
			return
		}
		p.Decided = utc(a.At)
		return
	}
}

// listsKey reports whether the detail of an act lists a key.
func listsKey(detail, key string) bool {
	return slices.Contains(strings.FieldsFunc(detail, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }), key)
}

// isMissed reports whether the time is among the missed ones of an act: they are the last ones before it, apart from
// one that was submitted, and one that came meanwhile.
func (p *PlannedTime) isMissed(a ports.Act, c *schedule.Cron) bool {
	text, _, is := strings.Cut(a.Detail, " times were missed")
	missed, err := strconv.Atoi(text)
	if !is || err != nil {
		return false
	}
	const apart = 2
	since, _ := timesBetween(c, p.At.Add(time.Nanosecond), a.At, missed+apart)
	return missed >= schedule.MaxDue || len(since) < missed+apart
}
