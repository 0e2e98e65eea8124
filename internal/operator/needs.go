package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NeedReason is why something needs a person. The identifiers are stable.
type NeedReason string

// The reasons, the most urgent first.
const (
	NeedLostOwner NeedReason = "lost_owner"      // its process died, or its lease has expired
	NeedNoWorker  NeedReason = "no_worker"       // it is parked, and no live worker continues it
	NeedNoLeader  NeedReason = "no_leader"       // jobs are scheduled, and no process leads
	NeedLate      NeedReason = "late"            // a scheduled run has not begun five minutes after its time
	NeedSchedule  NeedReason = "schedule"        // this program does not understand the schedule
	NeedInVain    NeedReason = "waiting_type"    // tasks wait, and no live worker executes their type
	NeedUnknown   NeedReason = "unknown_outcome" // whether its last commit succeeded is unknown
	NeedFailed    NeedReason = "failed"
	NeedNoCommit  NeedReason = "no_commit"   // a chunk step has not committed for ten heartbeats
	NeedSlow      NeedReason = "slow"        // it has run for more than twice the usual time
	NeedFile      NeedReason = "file"        // a job file is wrong
	NeedEvents    NeedReason = "dead_events" // events are not offered any more
	NeedLeftOut   NeedReason = "left_out"    // the scheduler left out times
	NeedStopped   NeedReason = "stopped"
	NeedSkips     NeedReason = "skips_left" // it completed, and skipped items were not redriven
)

// NeedReasons lists them.
func NeedReasons() []NeedReason {
	return []NeedReason{
		NeedLostOwner, NeedNoWorker, NeedNoLeader, NeedLate, NeedSchedule, NeedInVain, NeedUnknown, NeedFailed, NeedNoCommit, NeedSlow, NeedFile,
		NeedEvents, NeedLeftOut, NeedStopped, NeedSkips,
	}
}

// urgency is by the reason, and of one reason by whether the job has a schedule.
func (n *Need) urgency() int {
	at := 2 * slices.Index(NeedReasons(), n.Reason)
	if !n.Scheduled {
		at++
	}
	return at
}

const (
	// lateAfter is the lateness of a scheduled run that needs a person.
	lateAfter = 5 * time.Minute
	// inVain is how long tasks wait before they wait in vain.
	inVain = time.Minute
	// A job is slow after slowTimes its 95th percentile of at least usualRuns, and a minute.
	slowTimes = 2
	usualRuns = 5
	slowAfter = time.Minute
	// stuckBeats is the number of heartbeats without a commit.
	stuckBeats = 10
)

// Need is something that needs a person.
type Need struct {
	Reason NeedReason `json:"reason"`
	// Text is the reason as a sentence: package wording writes it for the clients.
	Text string `json:"text"`
	// Since is when it began, or zero if that is unknown.
	Since time.Time `json:"since,omitzero"`
	Job   string    `json:"job,omitempty"`
	// Scheduled: the job has a schedule that is not paused.
	Scheduled bool `json:"scheduled,omitempty"`
	// Execution, Status, Attempt, Params and Error describe an execution.
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Status    core.Status         `json:"status,omitempty"`
	Attempt   int                 `json:"attempt,omitempty"`
	Params    *Parameters         `json:"parameters,omitempty"`
	Error     string              `json:"error,omitempty"`
	RedriveOf core.JobExecutionID `json:"redrive_of,omitempty"`
	Owner     *Owner              `json:"owner,omitempty"`
	Waiting   *Waiting            `json:"waiting,omitempty"`
	Placed    []PlacedWork        `json:"placed,omitempty"`
	// Step has not committed.
	Step string `json:"step,omitempty"`
	// Seconds is how long it has run, is late or is without a commit, and Usual the 95th percentile of
	// the last completed executions.
	Seconds float64 `json:"seconds,omitempty"`
	Usual   float64 `json:"usual,omitempty"`
	// Name is the type of waiting tasks, or the topic of dead events.
	Name string `json:"name,omitempty"`
	// Count is of skipped items, tasks, events or times; More means that there are others.
	Count int  `json:"count,omitempty"`
	More  bool `json:"more,omitempty"`
	// Registered: the stored file is wrong, and not only the one on the disk.
	Registered bool          `json:"registered,omitempty"`
	Problems   []FileProblem `json:"problems,omitempty"`
	// Actions: the best first.
	Actions []Action `json:"actions"`
}

func needOfExecution(reason NeedReason, e *Execution) Need {
	actions := e.Actions
	if actions == nil {
		actions = []Action{}
	}
	return Need{
		Reason: reason, Job: e.JobName, Execution: e.ID, Status: e.Status, Attempt: e.Attempt, Params: &e.Params, Error: e.Error, RedriveOf: e.RedriveOf,
		Owner: e.Owner, Waiting: e.Waiting, Placed: e.Placed, Actions: actions,
	}
}

// needOf returns the most urgent need of a running execution.
func (s *overviews) needOf(e *Execution, usual map[core.JobExecutionID]float64, stuck map[core.JobExecutionID]stuckStep) (Need, bool) {
	unfit := slices.ContainsFunc(e.Placed, func(p PlacedWork) bool { return p.Unfit })
	step, still := stuck[e.ID]
	switch {
	case e.Owner != nil && e.Owner.Lost:
		need := needOfExecution(NeedLostOwner, e)
		if now := s.judge.now(); e.Owner.LeaseUntil.Before(now) {
			need.Since = e.Owner.LeaseUntil
		}
		return need, true
	case e.Waiting.NoWorker() || unfit:
		need := needOfExecution(NeedNoWorker, e)
		if !e.Waiting.NoWorker() { // a worker runs, but none that fits
			need.Actions = slices.DeleteFunc(slices.Clone(need.Actions), func(a Action) bool { return a.Kind == refusal.ActWork })
		}
		return need, true
	case still:
		need := needOfExecution(NeedNoCommit, e)
		need.Step, need.Since = step.name, utc(step.since)
		need.Seconds = seconds(s.judge.now().Sub(step.since))
		return s.watched(need), true
	case usual[e.ID] > 0:
		need := needOfExecution(NeedSlow, e)
		need.Seconds, need.Usual = e.Duration, usual[e.ID]
		need.Since = e.StartedAt.Add(slowLimit(need.Usual))
		return s.watched(need), true
	}
	return Need{}, false
}

// watched: before it is stopped, it is looked at.
func (s *overviews) watched(n Need) Need {
	n.Actions = slices.Concat([]Action{{Kind: refusal.ActWatch, Job: n.Job}}, n.Actions)
	return n
}

func slowLimit(usual float64) time.Duration {
	return max(slowAfter, time.Duration(slowTimes*usual*float64(time.Second)))
}

// slow returns the usual duration of executions that run much longer.
func (s *overviews) slow(ctx context.Context, running []Execution) (map[core.JobExecutionID]float64, error) {
	var names []string
	for _, e := range running {
		if e.Duration > slowAfter.Seconds() && e.RedriveOf == 0 && !slices.Contains(names, e.JobName) {
			names = append(names, e.JobName)
		}
	}
	list, runs, err := s.recent.of(ctx, names...)
	if err != nil {
		return nil, err
	}
	usual := map[string]float64{}
	for _, job := range list {
		if took := durations(job.Completed, runs); len(took) >= usualRuns {
			usual[job.JobName] = percentile(took, p95)
		}
	}
	slow := map[core.JobExecutionID]float64{}
	for _, e := range running {
		if u := usual[e.JobName]; u > 0 && e.RedriveOf == 0 && e.Duration > slowLimit(u).Seconds() {
			slow[e.ID] = u
		}
	}
	return slow, nil
}

// stuckStep is a chunk step without a commit since then.
type stuckStep struct {
	name  string
	since time.Time
}

// stuck returns of each execution the chunk step that has not committed for the longest time.
func (s *overviews) stuck(ctx context.Context, running []Execution) (map[core.JobExecutionID]stuckStep, error) {
	before := s.judge.now().Add(-stuckBeats * s.heartbeat)
	var ids []core.JobExecutionID
	for _, e := range running {
		if !e.StartedAt.IsZero() && e.StartedAt.Before(before) {
			ids = append(ids, e.ID)
		}
	}
	open, err := patiently(ctx, func(ctx context.Context) ([]ports.OpenStep, error) { return s.attention.OpenSteps(ctx, before, ids...) })
	if err != nil || len(open) == 0 {
		return nil, err
	}
	last, err := s.lastCommits(ctx, open)
	if err != nil {
		return nil, err
	}
	stuck := map[core.JobExecutionID]stuckStep{}
	for _, step := range open {
		since, is := last[step.ID]
		if longest, known := stuck[step.Execution]; !is || !since.Before(before) || known && !since.Before(longest.since) {
			continue
		}
		chunk, err := s.steps.isChunk(ctx, step)
		if err != nil {
			return nil, err
		}
		if chunk {
			stuck[step.Execution] = stuckStep{step.Name, since}
		}
	}
	return stuck, nil
}

// lastCommits returns when steps committed last, by their samples, or began without a commit. Of a step with
// commits and without samples, as one of an earlier version, it is unknown.
func (s *overviews) lastCommits(ctx context.Context, open []ports.OpenStep) (map[core.StepExecutionID]time.Time, error) {
	last := map[core.StepExecutionID]time.Time{}
	var ids []core.StepExecutionID
	for _, step := range open {
		if step.Commits == 0 {
			last[step.ID] = step.StartedAt
		} else {
			ids = append(ids, step.ID)
		}
	}
	if len(ids) == 0 {
		return last, nil
	}
	stored, err := s.records.StoredSeries(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("read the samples of running steps: %w", err)
	}
	for id, of := range stored {
		samples, err := series.Decode(of.Samples)
		if err != nil || len(samples) == 0 { // of a later version
			continue
		}
		last[id] = s.judge.now().Add(samples[len(samples)-1].At - of.Since)
	}
	return last, nil
}

func needOfFile(w wrongFile) Need {
	need := Need{Reason: NeedFile, Job: w.job, Name: w.path, Registered: w.registered, Problems: w.problems, Actions: []Action{}}
	if w.path != "" {
		need.Actions = append(need.Actions, Action{Kind: refusal.ActValidate, File: w.path})
	}
	if w.registered && w.path != "" {
		need.Actions = append(need.Actions, Action{Kind: refusal.ActRegister, File: w.path})
	}
	return need
}

// late returns schedules with a run that has not begun in time, or that this program does not understand;
// and first, if any is enabled, that no process leads.
func (s *overviews) late(ctx context.Context, list []taskports.Definition) (needs []Need, err error) {
	list = slices.DeleteFunc(slices.Clone(list), func(d taskports.Definition) bool { return d.Schedule == nil || !d.Enabled })
	if len(list) == 0 {
		return nil, nil
	}
	if s.work.workers != nil {
		leader, err := patiently(ctx, s.work.workers.Leader)
		if err != nil {
			return nil, fmt.Errorf("read the leader: %w", err)
		}
		if leader == nil || !leader.Leading {
			needs = append(needs, Need{Reason: NeedNoLeader, Count: len(list), Actions: []Action{{Kind: refusal.ActWork}}})
		}
	}
	var now time.Time
	var waiting map[int64]time.Time
	if _, err := patiently(ctx, func(ctx context.Context) (_ struct{}, err error) {
		now, waiting, err = s.attention.WaitingRuns(ctx)
		return struct{}{}, err
	}); err != nil {
		return nil, err
	}
	for _, d := range list {
		actions := []Action{{Kind: refusal.ActSchedules}, {Kind: refusal.ActHistory, Job: d.Name}}
		c, err := schedule.Of(*d.Schedule)
		if err == nil {
			_, err = c.Due(d.ScheduledUntil, now, schedule.CatchUp(d.Schedule.CatchUp))
		}
		if err != nil {
			needs = append(needs, Need{Reason: NeedSchedule, Job: d.Name, Error: secret.Text(err.Error()), Actions: actions})
			continue
		}
		if f := scheduleFigure(c, d, now, waiting[d.ID]); f.Late >= lateAfter {
			needs = append(needs, Need{Reason: NeedLate, Job: d.Name, Since: utc(now.Add(-f.Late)), Seconds: seconds(f.Late), Actions: actions})
		}
	}
	return needs, nil
}

// leftOut returns the schedules with times that were left out, with the newest reason.
func (s *overviews) leftOut(ctx context.Context, window time.Duration) (needs []Need, err error) {
	acts, err := patiently(ctx, func(ctx context.Context) ([]ports.Act, error) {
		return s.attention.LeftOut(ctx, s.judge.now().Add(-window))
	})
	for _, a := range acts {
		i := slices.IndexFunc(needs, func(n Need) bool { return n.Job == a.JobName })
		if i < 0 {
			i, needs = len(needs), append(needs, Need{
				Reason: NeedLeftOut, Job: a.JobName, Error: a.Detail, Actions: []Action{{Kind: refusal.ActHistory, Job: a.JobName}, {Kind: refusal.ActSchedules}},
			})
		}
		needs[i].Count++
		needs[i].Since = utc(a.At)
	}
	return needs, err
}

func needOfTopic(t ports.DeadTopic) Need {
	return Need{
		Reason: NeedEvents, Name: t.Topic, Count: min(t.Count, maxEnded), More: t.Count > maxEnded, Since: utc(t.Since),
		Actions: []Action{{Kind: refusal.ActEvents, Name: t.Topic}},
	}
}

func needOfType(t taskports.WaitingType) Need {
	return Need{
		Reason: NeedInVain, Name: t.Name, Count: t.Tasks, More: t.Tasks >= taskports.MostWaiting, Since: utc(t.Since),
		Actions: []Action{{Kind: refusal.ActWork}, {Kind: refusal.ActWorkers}},
	}
}

func endedNeed(e *Execution, j *ports.JudgedExecution, left ports.SkipsLeft) Need {
	if left.Count > 0 {
		e.Actions = skipActions(e.ID, int64(left.Items), int64(left.Count-left.Items))
		need := needOfExecution(NeedSkips, e)
		need.Since, need.Count, need.More = e.EndedAt, min(left.Count, maxSkipsLeft), left.Count > maxSkipsLeft
		return need
	}
	reason := NeedFailed
	switch {
	case e.Status == core.StatusUnknown || reasonOf(j.Newest.Refusal(true)) == refusal.Unknown:
		reason = NeedUnknown
	case e.Status == core.StatusStopped:
		reason = NeedStopped
	}
	need := needOfExecution(reason, e)
	need.Since = e.EndedAt
	return need
}

// skipActions are the actions on skipped items that were not redriven.
func skipActions(id core.JobExecutionID, items, reads int64) []Action {
	actions := []Action{{Kind: refusal.ActSkips, Execution: id}}
	switch {
	case items > 0:
		actions = append(actions, Action{Kind: refusal.ActRedrive, Execution: id})
	case reads > 0: // the text of unreadable items has to be given first
		actions = append(actions, Action{Kind: refusal.ActExport, Execution: id})
	}
	return actions
}
