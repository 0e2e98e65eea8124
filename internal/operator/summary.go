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

const (
	maxJobs     = 1_000 // of a page
	defaultJobs = 200
	maxNames    = 10_000
)

// JobsRequest selects jobs by name.
type JobsRequest struct {
	// Job selects one; empty means all.
	Job string `json:"job,omitempty"`
	// After selects greater names: the key of the next page.
	After string `json:"after,omitempty"`
	// Limit is at most 1000; 0 means 200.
	Limit int `json:"limit,omitempty"`
	// Catalog has the jobs that clients may run, and no others; nil means that carried and registered
	// ones can be run.
	Catalog *catalog.Catalog `json:"-"`
}

// JobSource is where a job is known from.
type JobSource string

// The sources of jobs.
const (
	JobInCatalog  JobSource = "catalog"    // a file of this server, or of this program
	JobRegistered JobSource = "registered" // with the servers that share the history
	JobInHistory  JobSource = "history"    // it was run
)

// JobPage is a page of jobs, by name.
type JobPage struct {
	Jobs []JobSummary `json:"jobs"`
	// Next is the key of the next page; empty means the last page.
	Next string `json:"next,omitempty"`
}

// JobSummary is a job with its last executions. Redrives do not count.
type JobSummary struct {
	Job     string      `json:"job"`
	Sources []JobSource `json:"sources"`
	// Runnable: this server may run it.
	Runnable bool   `json:"runnable"`
	File     string `json:"file,omitempty"`
	// Last has at most 20 executions, newest first.
	Last []RunSummary `json:"last"`
	// SuccessRate is the part of those in Last that are over which completed, from 0 to 1.
	SuccessRate *float64 `json:"success_rate,omitempty"`
	// Completed is the number of the last completed executions, at most 30, that Duration (seconds) and
	// Rows are of.
	Completed int      `json:"completed"`
	Duration  *Typical `json:"duration,omitempty"`
	Rows      *Typical `json:"rows,omitempty"`
	// Scheduled jobs have Next or, if their schedule is disabled, Paused.
	Scheduled bool           `json:"scheduled,omitempty"`
	Paused    bool           `json:"paused,omitempty"`
	Next      *ScheduledTime `json:"next,omitempty"`
	// ScheduleProblem is why this program does not understand the schedule.
	ScheduleProblem string `json:"schedule_problem,omitempty"`
	// SkipsLeft counts the items that the execution which completed last has skipped, and no redrive has
	// taken, at most 100; MoreSkips means that there are others.
	SkipsLeft int  `json:"skips_left,omitempty"`
	MoreSkips bool `json:"more_skips_left,omitempty"`
	// Problems of its file, and of the registered one.
	Problems []FileProblem `json:"problems,omitempty"`
}

// RunSummary is an execution of a job.
type RunSummary struct {
	Execution core.JobExecutionID `json:"execution"`
	Status    core.Status         `json:"status"`
	Started   time.Time           `json:"started,omitzero"`
	Duration  float64             `json:"duration"` // seconds
	// Rows are those that the steps of this attempt read or, if they read none, wrote; nil if there were
	// too many steps to count them.
	Rows *int64 `json:"rows,omitempty"`
	// Skips are the items that its steps skipped; nil like Rows.
	Skips *int64 `json:"skipped,omitempty"`
}

func runSummary(ref ports.RunRef, run ports.Run, now time.Time) RunSummary {
	s := RunSummary{Execution: ref.ID, Status: ref.Status, Started: utc(run.StartedAt), Duration: seconds(elapsed(run.StartedAt, run.EndedAt, now)), Rows: run.Rows}
	if run.Rows != nil {
		s.Skips = &run.Skips
	}
	return s
}

type summaries struct {
	judge      *judge
	jobs       *jobs
	files      *fileChecks
	recent     *recent
	registered taskports.Definitions // may be nil
	attention  ports.Attention       // may be nil
}

// JobSummaries returns the jobs of the catalog, of the definitions and of the history, with their last
// executions. The number of its statements does not depend on the number of jobs, apart from executions
// and stored files that this service has not read before.
func (s *summaries) JobSummaries(ctx context.Context, req JobsRequest) (*JobPage, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	switch {
	case req.Limit < 0 || req.Limit > maxJobs:
		return nil, &RequestError{Field: "limit", Value: fmt.Sprint(req.Limit), Reason: fmt.Sprintf("must be from 1 to %d", maxJobs)}
	case s.recent.records == nil:
		return nil, fmt.Errorf("summaries of jobs: %w", core.ErrNotFound)
	}
	known, definitions, err := s.known(ctx, req.Catalog)
	if err != nil {
		return nil, err
	}
	page := &JobPage{Jobs: []JobSummary{}}
	for _, j := range known {
		if j.Job > req.After && (req.Job == "" || j.Job == req.Job) {
			page.Jobs = append(page.Jobs, *j)
		}
	}
	slices.SortFunc(page.Jobs, func(a, b JobSummary) int { return cmp.Compare(a.Job, b.Job) })
	var more bool
	if page.Jobs, more = cutPage(page.Jobs, cmp.Or(req.Limit, defaultJobs)+1); more {
		page.Next = page.Jobs[len(page.Jobs)-1].Job
	}
	if err := s.addRuns(ctx, page.Jobs); err != nil {
		return nil, err
	}
	return page, s.addFiles(ctx, page.Jobs, req.Catalog, definitions)
}

// known returns all jobs by name, with their sources.
func (s *summaries) known(ctx context.Context, in *catalog.Catalog) (known map[string]*JobSummary, definitions []taskports.Definition, err error) {
	known = map[string]*JobSummary{}
	add := func(name string, from JobSource) *JobSummary {
		j := known[name]
		if j == nil {
			j = &JobSummary{Job: name, Last: []RunSummary{}}
			known[name] = j
		}
		j.Sources = append(j.Sources, from)
		return j
	}
	carried := in == nil
	if carried {
		for name, file := range s.jobs.files {
			j := add(name, JobInCatalog)
			j.Runnable, j.File = true, file.Path()
		}
	} else {
		for _, name := range in.Names() {
			add(name, JobInCatalog).Runnable = true
		}
	}
	if s.registered != nil {
		definitions, err = patiently(ctx, func(ctx context.Context) ([]taskports.Definition, error) {
			return s.registered.Definitions(ctx, taskports.DefinitionFilter{})
		})
		if err != nil {
			return nil, nil, err
		}
	}
	for _, d := range definitions {
		j := add(d.Name, JobRegistered)
		j.Runnable = j.Runnable || carried
		j.File = cmp.Or(j.File, d.Files.Path)
		s.addSchedule(j, d)
	}
	names, err := patiently(ctx, func(ctx context.Context) ([]string, error) { return s.recent.records.JobNames(ctx, maxNames) })
	for _, name := range names {
		add(name, JobInHistory)
	}
	return known, definitions, err
}

func (s *summaries) addSchedule(j *JobSummary, d taskports.Definition) {
	if j.Scheduled = d.Schedule != nil; !j.Scheduled {
		return
	}
	if j.Paused = !d.Enabled; j.Paused {
		return
	}
	view := foreseen(d, s.judge.now(), 1)
	j.ScheduleProblem = view.Error
	if len(view.Next) > 0 {
		j.Next = &view.Next[0]
	}
}

func (s *summaries) addRuns(ctx context.Context, page []JobSummary) error {
	names := make([]string, len(page))
	for i := range page {
		names[i] = page[i].Job
	}
	list, runs, err := s.recent.of(ctx, names...)
	if err != nil {
		return err
	}
	byName := make(map[string]*ports.JobRuns, len(list))
	var last []core.JobExecutionID
	for i := range list {
		byName[list[i].JobName] = &list[i]
		if ids := list[i].Completed; len(ids) > 0 {
			last = append(last, ids[0])
		}
	}
	left := map[core.JobExecutionID]ports.SkipsLeft{}
	if s.attention != nil {
		left, err = patiently(ctx, func(ctx context.Context) (map[core.JobExecutionID]ports.SkipsLeft, error) {
			return s.attention.SkipsLeft(ctx, maxSkipsLeft+1, last...)
		})
		if err != nil {
			return err
		}
	}
	for i := range page {
		if of := byName[page[i].Job]; of != nil {
			page[i].count(of, runs, s.judge.now())
			if len(of.Completed) > 0 {
				n := left[of.Completed[0]].Count
				page[i].SkipsLeft, page[i].MoreSkips = min(n, maxSkipsLeft), n > maxSkipsLeft
			}
		}
	}
	return nil
}

func (j *JobSummary) count(of *ports.JobRuns, runs map[core.JobExecutionID]ports.Run, now time.Time) {
	over, completed := 0, 0
	for _, ref := range of.Newest {
		j.Last = append(j.Last, runSummary(ref, runs[ref.ID], now))
		if ref.Status.IsOver() {
			over++
		}
		if ref.Status == core.StatusCompleted {
			completed++
		}
	}
	if over > 0 {
		rate := float64(completed) / float64(over)
		j.SuccessRate = &rate
	}
	j.Completed, j.Duration, j.Rows = len(of.Completed), typicalOf(durations(of.Completed, runs)), typicalOf(rowsOf(of.Completed, runs))
}

func (s *summaries) addFiles(ctx context.Context, page []JobSummary, in *catalog.Catalog, definitions []taskports.Definition) error {
	var checked []catalog.Checked
	if in != nil {
		names := make([]string, len(page))
		for i := range page {
			names[i] = page[i].Job
		}
		checked = in.Check(names)
		for _, c := range checked {
			if i, is := byJob(page, c.JobName); is {
				page[i].File = c.Path
			}
		}
	}
	listed := slices.DeleteFunc(slices.Clone(definitions), func(d taskports.Definition) bool { _, is := byJob(page, d.Name); return !is })
	wrong, err := patiently(ctx, func(ctx context.Context) ([]wrongFile, error) { return s.files.of(ctx, checked, listed) })
	if err != nil {
		return fmt.Errorf("check the job files: %w", err)
	}
	for _, w := range wrong {
		if i, is := byJob(page, w.job); is {
			page[i].Problems = append(page[i].Problems, w.problems...)
		}
	}
	return nil
}

func byJob(page []JobSummary, name string) (int, bool) {
	return slices.BinarySearchFunc(page, name, func(j JobSummary, name string) int { return cmp.Compare(j.Job, name) })
}
