package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type plans struct {
	schema    *schema
	judge     *judge
	jobs      *jobs
	chooser   *chooser
	restarts  *restarts
	changes   *comparison
	admission *admission
	tasks     OpenTasks
	redriving *redrives
	attempts  model.Attempts
	records   journal.Repository
}

// PlanRequest requests a dry run with the first items of each chunk step.
type PlanRequest struct {
	File    string        `json:"file,omitempty"`
	Checked *jobfile.File `json:"-"`
	// Execution plans its restart; 0 plans a run.
	Execution  core.JobExecutionID `json:"execution,omitempty"`
	From       string              `json:"from,omitempty"`
	IfComplete bool                `json:"if_complete,omitempty"`
	Params     map[string]string   `json:"params,omitempty"`
	// Folder is as in RunRequest.
	Folder        string `json:"-"`
	Again         bool   `json:"again,omitempty"`
	Next          bool   `json:"next,omitempty"`
	FromStart     bool   `json:"from_start,omitempty"`
	AcceptChanges bool   `json:"accept_changes,omitempty"`
	// Sample is the items of each step to read; 0 means 20.
	Sample int `json:"sample,omitempty"`
}

// DryRun is the predicted effect of a run.
type DryRun struct {
	JobName string           `json:"job"`
	Params  Parameters       `json:"parameters"`
	Sample  int              `json:"sample"`
	Changes []jobfile.Change `json:"changes,omitempty"`
	Steps   []*DryStep       `json:"steps"`
	Fails   bool             `json:"fails"`
	// Refused is set if a running execution would prevent the run now.
	Refused *Refusal `json:"refused,omitempty"`
	// Execution is continued; 0 for a new instance. The plan holds while it is its instance's newest and has Epoch.
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Epoch     int64               `json:"epoch,omitempty"`
}

// DryStep is an entry of the plan, with the result of the first items of its step.
type DryStep struct {
	PlanEntry
	// Kind is chunk, tasklet, tasks, partition, job or flow; decision or
	// condition; empty if the flow stops.
	Kind       string   `json:"kind,omitempty"`
	Component  string   `json:"component,omitempty"`
	Reader     *DryEnd  `json:"reader,omitempty"`
	Processors []string `json:"processors,omitempty"`
	Writers    []DryEnd `json:"writers,omitempty"`
	// The items are from the first one.
	Partitions []string `json:"partitions,omitempty"`
	// Tasks is the number that it would submit.
	Tasks    int      `json:"tasks,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Sampled  bool     `json:"sampled"`
	// Resumed: the items are those after its last commit.
	Resumed bool `json:"resumed,omitempty"`
	// Waits is why there are no items before earlier steps have run.
	Waits    string    `json:"waits,omitempty"`
	Error    string    `json:"error,omitempty"`
	Read     int       `json:"read"`
	Written  int       `json:"written"`
	Filtered int       `json:"filtered"`
	Skipped  int       `json:"skipped"`
	Failed   int       `json:"failed"`
	Unknown  int       `json:"unknown,omitempty"`
	Items    []DryItem `json:"items,omitempty"`
}

// DryEnd is a source or target of items.
type DryEnd struct {
	Component string   `json:"component"`
	Target    string   `json:"target,omitempty"`
	Database  string   `json:"database,omitempty"`
	Columns   []string `json:"columns,omitempty"`

	file bool // Target is a path
}

// DryItem is an item and its path through the processors.
type DryItem struct {
	Number int             `json:"number"`
	Path   string          `json:"path,omitempty"`
	Line   int64           `json:"line,omitempty"`
	Index  int64           `json:"index,omitempty"`
	Row    int64           `json:"row,omitempty"`
	Read   json.RawMessage `json:"read"`
	Stages []DryStage      `json:"stages,omitempty"`
	// Outcome is written, filtered, skipped, failed or unknown.
	Outcome string `json:"outcome"`
	Phase   string `json:"phase,omitempty"`
	Class   string `json:"class,omitempty"`
	Error   string `json:"error,omitempty"`
}

// DryStage is a processor's result for an item.
type DryStage struct {
	Processor string          `json:"processor"`
	Item      json.RawMessage `json:"item"`
}

// Outcomes of an item, in addition to written, filtered and skipped.
const (
	OutcomeFailed = "failed"
	// OutcomeUnknown: a dry run does not call a processor that writes to a
	// database.
	OutcomeUnknown = "unknown"
)

// Changes returns the stages that changed the item.
func (i DryItem) Changes() []DryStage {
	var list []DryStage
	before := i.Read
	for _, s := range i.Stages {
		if !bytes.Equal(before, s.Item) {
			list = append(list, s)
		}
		before = s.Item
	}
	return list
}

// WouldFail reports whether the step would fail.
func (s *DryStep) WouldFail() bool { return s.Error != "" || s.Failed > 0 }

const defaultSample = 20

// Plan plans a run with the parameters. It reads the first items of each chunk
// step with the real readers and processors. It creates no execution, opens no
// writers, and calls no tasklets or deciders. Writes by a reader's own query
// are not prevented: use a provider with read-only sessions. Errors are
// jobfile.Problems, those of Choose, refusal.Changed, *RequestError, and the
// cause of ctx.
func (s *plans) Plan(ctx context.Context, req PlanRequest) (*DryRun, error) {
	if req.Sample < 0 {
		return nil, &RequestError{Field: "sample", Value: fmt.Sprint(req.Sample), Reason: "it must be at least 1"}
	}
	if req.Sample == 0 {
		req.Sample = defaultSample
	}
	planOf := s.planRun
	if req.Execution != 0 {
		planOf = s.planRestart
	}
	l, last, err := planOf(ctx, req)
	if err != nil {
		return nil, err
	}
	j, params := l.job, l.params
	changes, err := s.planChanges(ctx, req, last, l)
	if err != nil {
		return nil, err
	}
	continued := last
	if req.FromStart {
		last = &core.JobExecution{Params: params}
	}
	plan, err := planner.NewFrom(ctx, s.records, j, last, l.from, nil)
	if err != nil {
		return nil, fmt.Errorf("plan a run of job %s: %w", j.Name, err)
	}
	d := &dryRun{n: req.Sample, accept: req.AcceptChanges, params: params, uses: l.file.Uses(params), job: j, handlers: s.tasks}
	if err := d.run(s.jobs.reading(ctx, j), plan); err != nil {
		return nil, err
	}
	result := &DryRun{JobName: j.Name, Params: Parameters{params}, Sample: req.Sample, Changes: changes, Steps: d.steps, Execution: continued.ID, Epoch: continued.Epoch}
	for _, step := range d.steps {
		result.Fails = result.Fails || step.WouldFail()
	}
	result.Refused, err = s.admission.excluded(ctx, j, params)
	return result, err
}

func (s *plans) planRun(ctx context.Context, req PlanRequest) (*launch, *core.JobExecution, error) {
	if req.From != "" || req.IfComplete {
		return nil, nil, &RequestError{Field: "from", Value: req.From, Reason: "only for the restart of an execution"}
	}
	file, err := s.planFile(req)
	if err != nil {
		return nil, nil, err
	}
	l, err := s.chooser.choose(ctx, RunRequest{Checked: file, Params: req.Params, Folder: req.Folder, Again: req.Again, Next: req.Next})
	if err != nil {
		return nil, nil, err
	}
	if err := s.admission.checkFormer(ctx, l); err != nil {
		return nil, nil, err
	}
	if err := l.bind(ctx); err != nil {
		return nil, nil, err
	}
	last, err := s.restarted(ctx, l.job, l.params)
	return l, last, err
}

func (s *plans) planRestart(ctx context.Context, req PlanRequest) (*launch, *core.JobExecution, error) {
	has, err := s.schema.hasHistory(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !has {
		return nil, nil, &Refusal{Reason: refusal.NotFound, Execution: req.Execution, Err: fmt.Errorf("execution %d: %w", req.Execution, core.ErrNotFound)}
	}
	l, err := s.restarts.restartOf(ctx, RestartRequest{
		Execution: req.Execution, Checked: req.Checked, File: req.File, FromStart: req.FromStart, From: req.From, IfComplete: req.IfComplete, AcceptChanges: req.AcceptChanges,
	})
	if err != nil {
		return nil, nil, err
	}
	if l.file == nil {
		return nil, nil, &RequestError{Field: "execution", Value: fmt.Sprint(req.Execution), Reason: "a dry run needs a job file, and this job is built in Go"}
	}
	if err := s.admission.admits(ctx, l); err != nil {
		return nil, nil, err
	}
	if err := l.bind(ctx); err != nil {
		return nil, nil, err
	}
	last := l.named.Clone()
	last.Params = l.params
	return l, &last, nil
}

func (s *plans) planChanges(ctx context.Context, req PlanRequest, last *core.JobExecution, l *launch) ([]jobfile.Change, error) {
	if last.ID == 0 || req.FromStart || last.Status == core.StatusCompleted {
		return nil, nil
	}
	changes, err := s.changes.changes(ctx, last, l)
	if req.AcceptChanges && errors.As(err, new(*jobfile.ChangedError)) {
		err = nil
	}
	return changes, err
}

func (s *plans) restarted(ctx context.Context, j *model.Job, params core.Parameters) (*core.JobExecution, error) {
	first := &core.JobExecution{Params: params}
	if has, err := s.schema.hasHistory(ctx); !has {
		return first, err
	}
	last, err := s.judge.lastExecution(ctx, j.Name, params.Key())
	if err != nil || last == nil {
		return first, err
	}
	newest, err := s.judge.newestAttempt(ctx, last)
	if err != nil {
		return nil, err
	}
	if newest.Refusal(j.Restartable) != nil || last.RedriveOf != 0 {
		return first, nil
	}
	last.Params = params
	return last, nil
}

func (s *plans) planFile(req PlanRequest) (*jobfile.File, error) {
	switch {
	case req.Checked != nil:
		return req.Checked, nil
	case req.File != "":
		return jobfile.Load(req.File, s.jobs.registry)
	}
	return nil, &RequestError{Field: "file", Reason: "a dry run needs a job file"}
}

func (s *DryStep) see(got chunk.Sampled) {
	s.Resumed = got.Resumed
	item := DryItem{
		Number: got.Number, Path: got.Meta.Path, Line: got.Meta.Line, Index: got.Meta.Index, Row: got.Meta.Row, Read: got.Read, Outcome: string(got.Fate),
		Phase: string(got.Phase), Class: got.Class,
	}
	for i, stage := range got.Stages {
		name := "processor"
		if i < len(s.Processors) {
			name = s.Processors[i]
		}
		item.Stages = append(item.Stages, DryStage{name, stage})
	}
	if got.Err != nil {
		item.Error = got.Err.Error()
	}
	if got.Phase != core.PhaseRead {
		s.Read++
	}
	switch {
	case got.Fate == chunk.FateFailed && dberr.IsReadOnly(got.Err):
		item.Outcome = OutcomeUnknown
		s.Unknown++
	case got.Fate == chunk.FateFailed:
		s.Failed++
	case got.Fate == chunk.FateSkipped:
		s.Skipped++
	case got.Fate == chunk.FateFiltered:
		s.Filtered++
	case got.Fate == chunk.FateWritten:
		s.Written++
	}
	s.Items = append(s.Items, item)
}
