package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator/position"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type explainer struct {
	judge       *judge
	view        *viewer
	work        *workload
	jobs        *jobs
	changes     *comparison
	admission   *admission
	checkpoints Checkpoints // may be nil
	records     explainRecords
}

type explainRecords interface {
	journal.Repository
	StepEntries(ctx context.Context, id core.JobInstanceID, since, until core.JobExecutionID) ([]ports.StepEntry, error)
	SkipCounts(ctx context.Context, id core.JobExecutionID) ([]ports.SkipCount, error)
}

// Explanation describes why an execution ended so, its committed work, and the
// effect of a restart.
type Explanation struct {
	Execution core.JobExecutionID `json:"execution"`
	JobName   string              `json:"job"`
	Status    core.Status         `json:"status"`
	ExitCode  string              `json:"exit,omitempty"`
	Attempt   int                 `json:"attempt"`
	Params    Parameters          `json:"parameters"`
	// Newest is the newest execution of the instance: only it can be restarted.
	Newest       core.JobExecutionID `json:"newest"`
	NewestStatus core.Status         `json:"newest_status"`
	CreatedAt    time.Time           `json:"created,omitzero"`
	StartedAt    time.Time           `json:"started,omitzero"`
	EndedAt      time.Time           `json:"ended,omitzero"`
	Duration     float64             `json:"duration"` // seconds
	RedriveOf    core.JobExecutionID `json:"redrive_of,omitempty"`
	// Cause is nil if it runs or is complete.
	Cause *Cause `json:"cause,omitempty"`
	// Waiting is why the last worker could not resume it; see also the
	// partition's error.
	Waiting       string       `json:"waiting,omitempty"`
	Placed        []PlacedWork `json:"placed,omitempty"`
	Owner         *Owner       `json:"owner,omitempty"`
	Lease         Lease        `json:"lease,omitempty"`
	StopRequested bool         `json:"stop_requested,omitempty"`
	// Steps are over all attempts that each was resumed from.
	Steps     []StepView     `json:"steps,omitempty"`
	Files     []WrittenFile  `json:"files,omitempty"`
	Skipped   []SkipCount    `json:"skipped,omitempty"`
	Decisions []DecisionPath `json:"decisions,omitempty"`
	Gates     []Gate         `json:"gates,omitempty"`
	// Restart is nil if a restart is refused, for a redrive, or if this program
	// no longer understands the stored job file.
	Restart *RestartPlan `json:"restart,omitempty"`
	// Unreadable names stored data that are left out, since they cannot be read; a restart is refused then.
	Unreadable string `json:"unreadable,omitempty"`
	// Refused is why a restart is, or would be, refused.
	Refused Reason `json:"refused,omitempty"`
	// RefusedBy is the execution that prevents a restart (refusal.Exclusive).
	RefusedBy core.JobExecutionID `json:"refused_by,omitempty"`
	// FileChange is how File, or ChangedFile of a child job, has changed since.
	File        string     `json:"file,omitempty"`
	FileChange  FileChange `json:"file_change,omitempty"`
	ChangedFile string     `json:"changed_file,omitempty"`
	// Changes are as a restart compares them. Restart is planned with the
	// current file, except after a FileError.
	Changes []jobfile.Change `json:"changes,omitempty"`
	// Diff is of the refused changes.
	Diff string `json:"diff,omitempty"`
	// FileError is why the current job file cannot be run.
	FileError string `json:"file_error,omitempty"`
	// Actions: the best first.
	Actions []Action `json:"actions"`
}

// CauseKind is the kind of a Cause.
type CauseKind string

// The kinds of a Cause.
const (
	CauseOwnerLost     CauseKind = "owner_lost"     // its process died, or gave no sign of life
	CauseStopRequested CauseKind = "stop_requested" // a stop was requested
	CauseFlow          CauseKind = "flow"           // the flow of the job ended it
	CauseGate          CauseKind = "gate"           // an `expect` of the job, or of Step, does not hold
	CauseStep          CauseKind = "step"           // Step failed
	CauseError         CauseKind = "error"          // the job failed by itself
)

// Cause is why an execution ended without being complete.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// Step is the step that decided, or empty.
	Step string `json:"step,omitempty"`
	Item string `json:"item,omitempty"`
	// Class is the error class of job files.
	Class string `json:"class,omitempty"`
	Error string `json:"error"`
	// JobError is set if it has more than the step's.
	JobError string `json:"job_error,omitempty"`
	Owner    *Owner `json:"owner,omitempty"`
}

// WrittenFile is a file that a step writes. Before its publication, Part has
// the committed bytes.
type WrittenFile struct {
	Step   string `json:"step"`
	Path   string `json:"path"`
	InView bool   `json:"in_view"`
	Part   string `json:"part,omitempty"`
	Bytes  *int64 `json:"committed_bytes,omitempty"` // of Part
}

// SkipCount counts skips of the same step, phase and error class.
type SkipCount struct {
	Step  string     `json:"step"`
	Phase core.Phase `json:"phase"`
	Class string     `json:"class"`
	Count int64      `json:"count"`
	Left  int64      `json:"left"` // not redriven
	// More: there may be more, since only the first 5,000 items of the execution are counted.
	More bool `json:"more,omitempty"`
}

// DecisionPath is a verdict with its target.
type DecisionPath struct {
	Element string `json:"element"`
	Verdict string `json:"verdict"`
	// Target is an element, or end, fail or stop; empty if unknown.
	Target string `json:"target,omitempty"`
}

// Gate is the result of an `expect`.
type Gate struct {
	Step string `json:"step,omitempty"` // empty for the job's
	Gate string `json:"gate"`
	Held bool   `json:"held"`
}

// ExplainRequest names the execution to explain.
type ExplainRequest struct {
	Execution core.JobExecutionID `json:"execution"`
}

// Explain explains an execution from the history and its stored job file. The
// number of statements does not depend on the history's length. It may return
// core.ErrNotFound.
func (s *explainer) Explain(ctx context.Context, req ExplainRequest) (*Explanation, error) {
	p, err := s.gather(ctx, req.Execution, nil)
	if err != nil {
		return nil, err
	}
	return p.explain(ctx)
}

func (p *findings) explain(ctx context.Context) (*Explanation, error) {
	x := &p.exec
	e := &Explanation{
		Execution: x.ID, JobName: x.JobName, Status: x.Status, ExitCode: x.ExitCode, Attempt: x.Attempt, Params: Parameters{x.Params},
		Newest: p.newest.Execution.ID, NewestStatus: p.newest.Execution.Status, CreatedAt: utc(x.CreatedAt), StartedAt: utc(x.StartedAt), EndedAt: utc(x.EndedAt),
		Duration: seconds(elapsed(x.StartedAt, x.EndedAt, p.judge.now())), RedriveOf: x.RedriveOf, StopRequested: !x.Status.IsOver() && x.StopRequested,
		Cause: p.cause(), Steps: p.results(), Files: p.files(), Decisions: p.paths(), Gates: p.gates(),
		File: x.Definition.Path, FileChange: p.change, ChangedFile: p.changed, Actions: []Action{},
	}
	if isParked(x) {
		e.Waiting = x.Error
	}
	if x.Status.IsRunning() {
		e.Owner = p.view.ownerOf(x, &p.newest)
		e.Lease = leaseOf(e.Owner)
	}
	if p.placed == nil {
		placed, err := p.work.placedIn(ctx, &ports.JudgedExecution{Execution: *x, Newest: p.newest}, p.stepRecords)
		if err != nil {
			return nil, err
		}
		p.placed = &placed
	}
	e.Placed = *p.placed
	for _, c := range p.skips {
		e.Skipped = append(e.Skipped, SkipCount{c.Step, c.Phase, c.Class, c.Count, c.Left, c.More})
	}
	if err := p.explainRestart(ctx, e); err != nil {
		return nil, err
	}
	return e, nil
}

// walked are the journal of an instance at a stage of an execution (stageOf), and data of earlier attempts,
// which do not change in it.
type walked struct {
	execution core.JobExecutionID
	stage     string
	visits    []ports.JournalRow
	// attempts and earlier are nil if they are not read yet.
	attempts map[core.JobExecutionID]int
	earlier  map[core.StepExecutionID]core.StepExecution
	// entries are of the steps if none has parts, and added is ports.JudgedExecution.Steps before they were read.
	entries []ports.StepEntry
	added   int64
}

type findings struct {
	*explainer
	exec   core.JobExecution
	newest ports.NewestAttempt
	*stepRecords
	kinds map[string]string // of the steps of job
	walked
	decisions []DecisionView
	placed    *[]PlacedWork // nil if they are not read yet
	skips     []ports.SkipCount
	// nil if this program no longer understands the stored file; unread is why.
	file   *jobfile.File
	unread error
	// unreadable: records of this instance are incomplete.
	unreadable error
	job        *model.Job
	uses       []jobfile.Used
	change     FileChange
	changed    string
	now        core.Definition
	carried    *jobfile.File
	elsewhere  map[string]elsewhere
}

// gather reads the data of an explanation. before may be nil.
func (s *explainer) gather(ctx context.Context, id core.JobExecutionID, before *walked) (*findings, error) {
	judged, err := s.judge.judgedExecution(ctx, id)
	if err != nil {
		return nil, err
	}
	exec := &judged.Execution
	p := &findings{explainer: s, exec: *exec, newest: judged.Newest, walked: walked{execution: id, added: judged.Steps}}
	entries, err := s.entriesOf(ctx, judged, before)
	if err != nil {
		return nil, err
	}
	if p.stepRecords, err = readRecords(ctx, s.records, exec, entries, listedPartitions, false); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(entries, func(e ports.StepEntry) bool { return e.Manager != 0 }) {
		p.entries = entries
	}
	p.stage = p.stageOf(exec, p.newest.Execution.ID)
	if before != nil && before.execution == id && before.stage == p.stage { // a walk goes on by steps
		p.visits, p.attempts, p.earlier = before.visits, before.attempts, before.earlier
	} else if p.visits, err = s.records.Visits(ctx, exec.InstanceID, exec.AnewSince()); err != nil {
		return nil, fmt.Errorf("read the journal of execution %d: %w", id, err)
	}
	p.decisions = decisionsIn(p.visits, id)
	if p.stepRecords.skips {
		if p.skips, err = s.records.SkipCounts(ctx, id); err != nil {
			return nil, err
		}
	}
	p.unreadable = exec.Unreadable
	for name, h := range p.history {
		if p.unreadable == nil && h.Last.Unreadable != nil {
			p.unreadable = fmt.Errorf("step %s: %w", name, h.Last.Unreadable)
		}
	}
	s.readDefinition(p)
	p.index()
	p.findElsewhere(ctx)
	return p, nil
}

// entriesOf returns those of an earlier inspection if no step was added to a running execution since: it counts them.
func (s *explainer) entriesOf(ctx context.Context, judged *ports.JudgedExecution, before *walked) ([]ports.StepEntry, error) {
	e := &judged.Execution
	if before != nil && before.execution == e.ID && len(before.entries) > 0 && before.added == judged.Steps && judged.Newest.Execution.ID == e.ID && !e.Status.IsOver() {
		return before.entries, nil
	}
	return readEntries(ctx, s.records, e, e.AnewSince())
}

func (s *explainer) readDefinition(p *findings) {
	d := p.exec.Definition
	file, carried, err := s.jobs.storedFile(p.exec.Definition, p.exec.JobName)
	if err != nil {
		p.unread = err
		return
	}
	p.file, p.uses = file, file.Uses(p.exec.Params)
	if compiled, err := s.jobs.compileFile(file); err == nil {
		p.job = compiled
	}
	if p.carried = carried; carried != nil {
		if carried.Definition().Hash != d.Hash {
			p.change = FileChanged
		}
		return
	}
	p.now, p.change, p.changed = onDisk(d)
}

func (p *findings) results() []StepView {
	var list []StepView
	for _, h := range p.history {
		if h.Last.JobExecutionID < p.exec.ID && isFinal(h.Last) && h.Last.Manager == 0 {
			list = append(list, p.result(h.Last))
		}
	}
	slices.SortFunc(list, func(a, b StepView) int { return int(p.history[a.Step].Last.ID - p.history[b.Step].Last.ID) })
	for _, s := range p.own {
		if s.Manager == 0 {
			list = append(list, p.result(s))
		}
	}
	return list
}

func (p *findings) result(s core.StepExecution) StepView {
	view := p.view.stepView(&s)
	view.count(s.Carried())
	view.Kind, view.Position = p.kind(s.Name), position.Text(s.Position, p.reads(s.Name))
	view.Undone, view.Resumed, view.SkippedUndone = s.InHand.Read, s.Before != core.Counters{}, 0
	view.CommittedIn, view.CommitProblem = p.committedIn(s)
	if parts := p.parts[s.Name]; s.Manager == 0 && len(parts) > 0 {
		view.Partitions = p.partitions(s.Name, parts)
	}
	return view
}

func (p *findings) partitions(step string, parts partEntries) *PartitionsView {
	view := &PartitionsView{Total: len(parts), Statuses: parts.statuses(), Branches: parts.branches()}
	for _, e := range parts.left(listedPartitions) {
		if record, known := p.record[e.ID]; known {
			of := p.result(record)
			of.Step = strings.TrimPrefix(e.Name, core.PartName(step, ""))
			view.List = append(view.List, of)
		}
	}
	slices.SortFunc(view.List, func(a, b StepView) int { return strings.Compare(a.Step, b.Step) })
	view.Omitted = parts.count(parts.isLeft) - len(view.List)
	return view
}

func (p *findings) index() {
	p.kinds = map[string]string{}
	if p.job == nil {
		return
	}
	for _, s := range slices.Concat(p.job.Flow.Steps(), p.job.Finally.Steps()) {
		p.kinds[s.Name()] = s.Kind()
	}
}

// known are the records that explain has read: a plan of a restart reads them again.
func (p *findings) known() journal.Repository {
	return &knownRecords{Repository: p.records, exec: &p.exec, history: p.history, visits: p.visits}
}

type knownRecords struct {
	journal.Repository
	exec    *core.JobExecution
	history map[string]ports.StepHistory
	visits  []ports.JournalRow
}

func (r *knownRecords) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
	if id != r.exec.InstanceID || since != r.exec.AnewSince() {
		return r.Repository.LastSteps(ctx, id, since)
	}
	return maps.Clone(r.history), nil
}

func (r *knownRecords) Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error) {
	if id != r.exec.InstanceID || since != r.exec.AnewSince() {
		return r.Repository.Visits(ctx, id, since)
	}
	return slices.Clone(r.visits), nil
}

func (p *findings) kind(step string) string { return p.kinds[step] }

func (p *findings) reads(step string) string {
	for _, u := range p.uses {
		if u.Step == step && u.Kind == registry.KindReader && u.File {
			return u.Target
		}
	}
	return ""
}
