package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The defaults and bounds of an OverviewRequest.
const (
	OverviewHorizon = 30 * 24 * time.Hour
	OverviewWindow  = 24 * time.Hour
	// MaxOverview is the largest page.
	MaxOverview = 200

	// maxEnded is the number of ended executions that are counted.
	maxEnded = 5_000
	// maxSkipsLeft is the number of skipped items of an execution that are counted.
	maxSkipsLeft = 100
)

// OverviewRequest bounds an overview.
type OverviewRequest struct {
	// Since selects ended executions that were created then or later; zero means 30 days ago.
	Since time.Time `json:"since,omitzero"`
	// Window is the time in which ended executions are counted, and times count that the scheduler
	// left out; 0 means 24 hours.
	Window time.Duration `json:"window,omitempty"`
	// Before is Next of the previous page, which has only ended executions; 0 means the first page.
	Before core.JobExecutionID `json:"before,omitempty"`
	// Limit of ended executions on a page is at most MaxOverview; 0 means 50.
	Limit int `json:"limit,omitempty"`
	// Catalog has the job files that are checked; nil means only registered ones.
	Catalog *catalog.Catalog `json:"-"`
}

// Overview has the problems that need a person, and the running executions.
type Overview struct {
	At time.Time `json:"at"`
	// Since is the time of creation from which on ended executions are searched.
	Since time.Time `json:"since"`
	// Needs has the most urgent first, by the order of the reasons; of one reason jobs with a schedule, then the
	// newest ended executions.
	Needs []Need `json:"needs"`
	// Next is the key of the next page of ended executions; 0 means that there are no more.
	Next core.JobExecutionID `json:"next,omitempty"`
	// Running are the oldest executions that are not over, at most 200; first page only.
	Running []Execution `json:"running,omitempty"`
	// MoreRunning: there are others, which were not judged.
	MoreRunning bool `json:"more_running,omitempty"`
	// Ended is nil on later pages.
	Ended *EndedInWindow `json:"ended,omitempty"`
}

// EndedInWindow counts the executions that ended in a window of time, by their status now.
type EndedInWindow struct {
	Window float64 `json:"window"` // seconds
	// Since is the beginning of the counted time: of the window or, if More, the time since which the
	// newest 5,000 ended.
	Since    time.Time           `json:"since"`
	Statuses map[core.Status]int `json:"statuses"`
	Total    int                 `json:"total"`
	More     bool                `json:"more,omitempty"`
}

// overviews composes the answers of the judge, the schedules, the workers and the job files.
type overviews struct {
	judge     *judge
	view      *viewer
	work      *workload
	jobs      *jobs
	schedules *schedules
	files     *fileChecks
	recent    *recent
	steps     *stepKinds
	heartbeat time.Duration
	attention ports.Attention // may be nil
	records   overviewRecords
}

type overviewRecords interface {
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
	StoredSeries(ctx context.Context, ids ...core.StepExecutionID) (map[core.StepExecutionID]ports.StepSeries, error)
}

// Overview returns the problems that need a person. The number of its statements, and their cost, do not
// grow with the history: it reads the executions that are not over, and from the newest one backwards those
// that failed (rule OP9).
func (s *overviews) Overview(ctx context.Context, req OverviewRequest) (*Overview, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	if s.attention == nil {
		return nil, fmt.Errorf("overview: %w", core.ErrNotFound)
	}
	if err := req.check(s.judge.now()); err != nil {
		return nil, err
	}
	registered, err := s.definitions(ctx)
	if err != nil {
		return nil, err
	}
	o := &Overview{At: utc(s.judge.now()), Since: utc(req.Since), Needs: []Need{}}
	if req.Before == 0 {
		err = s.first(ctx, o, req, registered)
	}
	if err == nil {
		err = s.ended(ctx, o, req)
	}
	o.order(registered)
	return o, err
}

func (s *overviews) definitions(ctx context.Context) ([]taskports.Definition, error) {
	if s.schedules.registered == nil {
		return nil, nil
	}
	return patiently(ctx, func(ctx context.Context) ([]taskports.Definition, error) {
		return s.schedules.registered.Definitions(ctx, taskports.DefinitionFilter{})
	})
}

func (o *Overview) order(registered []taskports.Definition) {
	for i := range o.Needs {
		n := &o.Needs[i]
		n.Scheduled = slices.ContainsFunc(registered, func(d taskports.Definition) bool { return d.Name == n.Job && d.Schedule != nil && d.Enabled })
	}
	slices.SortStableFunc(o.Needs, func(a, b Need) int { return cmp.Compare(a.urgency(), b.urgency()) })
}

func (r *OverviewRequest) check(now time.Time) error {
	switch {
	case r.Limit < 0 || r.Limit > MaxOverview:
		return &RequestError{Field: "limit", Value: fmt.Sprint(r.Limit), Reason: fmt.Sprintf("must be from 1 to %d", MaxOverview)}
	case r.Window < 0:
		return &RequestError{Field: "window", Value: r.Window.String(), Reason: "must be longer than nothing"}
	case r.Before < 0:
		return &RequestError{Field: "before", Value: fmt.Sprint(r.Before), Reason: "must be the number of an execution"}
	}
	r.Limit, r.Window = cmp.Or(r.Limit, defaultLimit), cmp.Or(r.Window, OverviewWindow)
	if r.Since.IsZero() {
		r.Since = now.Add(-OverviewHorizon)
	}
	return nil
}

// first adds everything but ended executions.
func (s *overviews) first(ctx context.Context, o *Overview, req OverviewRequest, registered []taskports.Definition) error {
	for _, find := range []func(ctx context.Context, o *Overview, req OverviewRequest) error{s.running, s.waiting, s.counts} {
		if err := find(ctx, o, req); err != nil {
			return err
		}
	}
	return s.scheduled(ctx, o, req, registered)
}

func (s *overviews) running(ctx context.Context, o *Overview, _ OverviewRequest) error {
	ids, err := patiently(ctx, func(ctx context.Context) ([]core.JobExecutionID, error) {
		return s.attention.OldestRunning(ctx, maxRunning+1)
	})
	if err != nil {
		return err
	}
	ids, o.MoreRunning = cutPage(ids, maxRunning+1)
	judged, err := s.records.Judged(ctx, ports.JudgedRequest{IDs: ids, Brief: true, Dead: s.judge.dead})
	if err != nil {
		return fmt.Errorf("judge the running executions: %w", err)
	}
	judged = slices.DeleteFunc(judged, func(j ports.JudgedExecution) bool { return j.Execution.Status.IsOver() })
	slices.Reverse(judged) // the oldest first
	if o.Running, err = s.view.views(ctx, judged); err != nil {
		return err
	}
	slow, err := s.slow(ctx, o.Running)
	if err != nil {
		return err
	}
	stuck, err := s.stuck(ctx, o.Running)
	if err != nil {
		return err
	}
	for i := range o.Running {
		if need, is := s.needOf(&o.Running[i], slow, stuck); is {
			o.Needs = append(o.Needs, need)
		}
	}
	return nil
}

// scheduled adds times that are late or were left out, and wrong schedules and files.
func (s *overviews) scheduled(ctx context.Context, o *Overview, req OverviewRequest, list []taskports.Definition) error {
	var checked []catalog.Checked
	if req.Catalog != nil {
		checked = req.Catalog.Check(req.Catalog.Names())
	}
	wrong, err := patiently(ctx, func(ctx context.Context) ([]wrongFile, error) { return s.files.of(ctx, checked, list) })
	if err != nil {
		return fmt.Errorf("check the job files: %w", err)
	}
	for _, w := range wrong {
		o.Needs = append(o.Needs, needOfFile(w))
	}
	late, err := s.late(ctx, list)
	if err != nil {
		return err
	}
	left, err := s.leftOut(ctx, req.Window)
	o.Needs = append(append(o.Needs, late...), left...)
	return err
}

// waiting adds the work of tasks that no process does.
func (s *overviews) waiting(ctx context.Context, o *Overview, _ OverviewRequest) error {
	topics, err := patiently(ctx, func(ctx context.Context) ([]ports.DeadTopic, error) { return s.attention.DeadTopics(ctx, maxEnded) })
	if err != nil {
		return err
	}
	for _, t := range topics {
		o.Needs = append(o.Needs, needOfTopic(t))
	}
	if s.work.workers == nil {
		return nil
	}
	types, err := patiently(ctx, s.work.workers.WaitingTypes)
	if err != nil || len(types) == 0 {
		return err
	}
	workers, err := patiently(ctx, s.work.workers.Workers)
	for _, t := range taskports.InVain(types, workers) {
		if s.judge.now().Sub(t.Since) >= inVain {
			o.Needs = append(o.Needs, needOfType(t))
		}
	}
	return err
}

func (s *overviews) counts(ctx context.Context, o *Overview, req OverviewRequest) error {
	from := s.judge.now().Add(-req.Window)
	counts, err := patiently(ctx, func(ctx context.Context) (ports.EndedCounts, error) {
		return s.attention.EndedSince(ctx, from, maxEnded+1)
	})
	if err != nil {
		return err
	}
	o.Ended = &EndedInWindow{Window: req.Window.Seconds(), Since: utc(from), Statuses: counts.Statuses}
	for _, n := range counts.Statuses {
		o.Ended.Total += n
	}
	if o.Ended.More = o.Ended.Total > maxEnded; o.Ended.More {
		o.Ended.Since = utc(counts.Since)
	}
	return nil
}

// ended adds a page of ended executions.
func (s *overviews) ended(ctx context.Context, o *Overview, req OverviewRequest) error {
	found, err := patiently(ctx, func(ctx context.Context) (ports.Uncleared, error) {
		return s.attention.Uncleared(ctx, ports.UnclearedRequest{Since: req.Since, Before: req.Before, Limit: req.Limit + 1})
	})
	if err != nil {
		return err
	}
	ids := slices.Concat(found.Attempts, found.Skipped)
	slices.SortFunc(ids, func(a, b core.JobExecutionID) int { return cmp.Compare(b, a) })
	o.Next = found.Reached
	if len(ids) > req.Limit {
		ids = ids[:req.Limit]
		o.Next = ids[len(ids)-1]
	}
	judged, err := s.records.Judged(ctx, ports.JudgedRequest{IDs: ids, Brief: true, Dead: s.judge.dead})
	if err != nil {
		return fmt.Errorf("judge the ended executions: %w", err)
	}
	skipped := slices.DeleteFunc(slices.Clone(ids), func(id core.JobExecutionID) bool { return !slices.Contains(found.Skipped, id) })
	left, err := patiently(ctx, func(ctx context.Context) (map[core.JobExecutionID]ports.SkipsLeft, error) {
		return s.attention.SkipsLeft(ctx, maxSkipsLeft+1, skipped...)
	})
	if err != nil {
		return err
	}
	judged, err = s.stillNeeded(ctx, judged, left)
	if err != nil {
		return err
	}
	views, err := s.view.views(ctx, judged)
	if err != nil {
		return err
	}
	for i := range views {
		o.Needs = append(o.Needs, endedNeed(&views[i], &judged[i], left[views[i].ID]))
	}
	return nil
}

// stillNeeded drops executions that were cleared since their IDs were read, and skips before a restart
// from the start.
func (s *overviews) stillNeeded(ctx context.Context, judged []ports.JudgedExecution, left map[core.JobExecutionID]ports.SkipsLeft) (needed []ports.JudgedExecution, err error) {
	for _, j := range judged {
		e, newest := &j.Execution, &j.Newest.Execution
		switch _, skips := left[e.ID]; {
		case !skips && (newest.ID != e.ID || !slices.Contains([]core.Status{core.StatusFailed, core.StatusStopped, core.StatusUnknown}, e.Status)):
			continue
		case skips && newest.Status != core.StatusCompleted:
			continue
		case skips && newest.ID != e.ID:
			last, err := seen(ctx, s.records, newest.ID)
			if err != nil {
				return nil, err
			}
			if e.ID < last.AnewSince() {
				continue
			}
		}
		needed = append(needed, j)
	}
	return needed, nil
}
