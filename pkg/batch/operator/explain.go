package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Explanation says why an execution ended as it did, what of it is committed, and what
// a restart does.
type Explanation struct {
	Execution core.JobExecutionID `json:"execution"`
	JobName   string              `json:"job"`
	Status    core.Status         `json:"status"`
	ExitCode  string              `json:"exit,omitempty"`
	Attempt   int                 `json:"attempt"`
	Params    Parameters          `json:"parameters"`
	// Newest is the newest execution of the instance, the only one that a restart is
	// about, and NewestStatus its status.
	Newest       core.JobExecutionID `json:"newest"`
	NewestStatus core.Status         `json:"newest_status"`
	CreatedAt    time.Time           `json:"created,omitzero"`
	StartedAt    time.Time           `json:"started,omitzero"`
	EndedAt      time.Time           `json:"ended,omitzero"`
	Duration     float64             `json:"duration"` // seconds
	// RedriveOf is the execution whose skipped items this one redrives; 0: none.
	RedriveOf core.JobExecutionID `json:"redrive_of,omitempty"`
	// Cause is nil for an execution that runs or is complete.
	Cause *Cause `json:"cause,omitempty"`
	// Waiting is why the last worker that should have resumed a parked execution could not.
	// That of a partition is the error of the partition.
	Waiting string `json:"waiting,omitempty"`
	// Placed is its work that waits for certain workers.
	Placed []PlacedWork `json:"placed,omitempty"`
	// Owner and Lease are those of a running execution; one that is parked has none.
	Owner         *Owner `json:"owner,omitempty"`
	Lease         Lease  `json:"lease,omitempty"`
	StopRequested bool   `json:"stop_requested,omitempty"`
	// Steps are what each step has committed, over all attempts that it was resumed from, with
	// all of its partitions.
	Steps     []StepView     `json:"steps,omitempty"`
	Files     []WrittenFile  `json:"files,omitempty"`
	Skipped   []SkipCount    `json:"skipped,omitempty"`
	Decisions []DecisionPath `json:"decisions,omitempty"`
	Gates     []Gate         `json:"gates,omitempty"`
	// Restart is what a restart does. nil: it is refused, or the execution is a redrive,
	// or this program does not understand the stored job file any more.
	Restart *RestartPlan `json:"restart,omitempty"`
	// Refused is why a restart is, or would be, refused; empty: it is not.
	Refused Reason `json:"refused,omitempty"`
	// RefusedBy is the execution that a restart must not run beside (ReasonExclusive).
	RefusedBy core.JobExecutionID `json:"refused_by,omitempty"`
	// File is the path of the job file. FileChange is what became since of it, or of a file
	// of a child job, and ChangedFile which one that is.
	File        string     `json:"file,omitempty"`
	FileChange  FileChange `json:"file_change,omitempty"`
	ChangedFile string     `json:"changed_file,omitempty"`
	// Changes are those of a job file that changed, as a restart compares them. Restart is
	// planned with the file as it is now, but for one with a FileError.
	Changes []jobfile.Change `json:"changes,omitempty"`
	// Diff has the lines that are different where a change is refused, as a unified diff.
	Diff string `json:"diff,omitempty"`
	// FileError is why the job file as it is now cannot be run.
	FileError string `json:"file_error,omitempty"`
	// Actions are the ways on, the best first.
	Actions []Action `json:"actions"`
}

// FileChange is what became of a job file since an execution began.
type FileChange string

// The changes of a job file; empty: it is the same.
const (
	FileGone    FileChange = "gone"
	FileChanged FileChange = "changed"
)

// CauseKind is what made an execution end without being complete.
type CauseKind string

// The kinds of a cause.
const (
	CauseOwnerLost     CauseKind = "owner_lost"     // its process died, or gave no sign of life
	CauseStopRequested CauseKind = "stop_requested" // somebody asked for a stop
	CauseFlow          CauseKind = "flow"           // the flow of the job says so
	CauseGate          CauseKind = "gate"           // what the job, or Step, expects does not hold
	CauseStep          CauseKind = "step"           // Step failed
	CauseError         CauseKind = "error"          // the job failed by itself
)

// Cause is why an execution ended without being complete.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// Step is the step that decided; empty: none did.
	Step string `json:"step,omitempty"`
	// Item is where the item came from that the error is about.
	Item string `json:"item,omitempty"`
	// Class is the class of the error, as job files name it.
	Class string `json:"class,omitempty"`
	Error string `json:"error"`
	// JobError is the message of the job, where it says more than that of the step.
	JobError string `json:"job_error,omitempty"`
	// Owner is the process that was lost.
	Owner *Owner `json:"owner,omitempty"`
}

// WrittenFile is a file that a step writes. It is in view once the step completed;
// before, what is committed is in Part.
type WrittenFile struct {
	Step   string `json:"step"`
	Path   string `json:"path"`
	InView bool   `json:"in_view"`
	Part   string `json:"part,omitempty"`
	Bytes  *int64 `json:"committed_bytes,omitempty"` // of Part
}

// SkipCount is a number of skipped items with the same step, phase and error class.
type SkipCount struct {
	Step  string     `json:"step"`
	Phase core.Phase `json:"phase"`
	Class string     `json:"class"`
	Count int64      `json:"count"`
	Left  int64      `json:"left"` // not redriven
}

// DecisionPath is a verdict and where it led.
type DecisionPath struct {
	Element string `json:"element"`
	Verdict string `json:"verdict"`
	// Target is an element, or end, fail or stop; empty: it is not known.
	Target string `json:"target,omitempty"`
}

// Gate is how an `expect` was answered.
type Gate struct {
	Step string `json:"step,omitempty"` // empty: that of the job
	Gate string `json:"gate"`
	Held bool   `json:"held"`
}

// ExplainRequest asks for the explanation of an execution.
type ExplainRequest struct {
	Execution core.JobExecutionID `json:"execution"`
}

// Explain explains an execution. It reads the history, with a number of statements that
// does not depend on its length, and the job file as it was when the execution began.
// core.ErrNotFound if there is no such execution.
func (s *Service) Explain(ctx context.Context, req ExplainRequest) (*Explanation, error) {
	p, err := s.history(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	x := &p.exec
	e := &Explanation{
		Execution: x.ID, JobName: x.JobName, Status: x.Status, ExitCode: x.ExitCode, Attempt: x.Attempt, Params: Parameters{x.Params},
		Newest: p.newest.Execution.ID, NewestStatus: p.newest.Execution.Status, CreatedAt: utc(x.CreatedAt), StartedAt: utc(x.StartedAt), EndedAt: utc(x.EndedAt),
		Duration: seconds(elapsed(x.StartedAt, x.EndedAt, s.config.Now())), RedriveOf: x.RedriveOf, StopRequested: !x.Status.IsOver() && x.StopRequested,
		Cause: p.cause(), Steps: p.results(), Files: p.files(), Decisions: p.paths(), Gates: p.gates(),
		File: x.Definition.Path, FileChange: p.change, ChangedFile: p.changed, Actions: []Action{},
	}
	if isParked(x) {
		e.Waiting = x.Error
	}
	if x.Status.IsRunning() {
		e.Owner = s.ownerOf(x, &p.newest)
		e.Lease = leaseOf(e.Owner)
	}
	placed, err := s.placed(ctx, []core.JudgedExecution{{Execution: *x}})
	if err != nil {
		return nil, err
	}
	e.Placed = placed[x.ID]
	for _, c := range p.skips {
		e.Skipped = append(e.Skipped, SkipCount{c.Step, c.Phase, c.Class, c.Count, c.Left})
	}
	if err := p.explainRestart(ctx, e); err != nil {
		return nil, err
	}
	return e, nil
}

// history is what the repository knows of an execution.
type history struct {
	service *Service
	exec    core.JobExecution
	// newest is the newest execution of its instance.
	newest core.NewestAttempt
	steps  []core.StepExecution // of this execution
	// history is the newest execution of each step in the instance.
	history map[string]core.StepHistory
	// parts are the names of a step's partitions in the history, by the name of the step, in order; at is the newest
	// record of a step in this execution, by its name.
	parts     map[string][]string
	at        map[string]int
	kinds     map[string]string // of the steps of job
	decisions []DecisionView
	skips     []core.SkipCount
	// job and uses are what the stored job file says; nil where this program does not
	// understand it any more, as when a component is gone.
	job    *core.Job
	uses   []jobfile.Used
	change FileChange
	// changed is the path of the file, and now the definition as it is on the disk.
	changed string
	now     core.Definition
	// carried is the job as the application has it, where that is not on the disk.
	carried *jobfile.File
	// elsewhere is what databases of rows say of steps, by name.
	elsewhere map[string]elsewhere
}

func (s *Service) history(ctx context.Context, id core.JobExecutionID) (*history, error) {
	r := s.config.Repository
	exec, err := r.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	p := &history{service: s, exec: *exec}
	if p.newest, err = s.newestAttempt(ctx, exec); err != nil {
		return nil, err
	}
	if p.steps, err = r.Steps(ctx, id); err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", id, err)
	}
	if p.history, err = r.LastSteps(ctx, exec.InstanceID, exec.AnewSince()); err != nil {
		return nil, fmt.Errorf("read the steps of the instance: %w", err)
	}
	if p.decisions, err = s.decisions(ctx, exec); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(p.steps, func(s core.StepExecution) bool { return s.Counters.Sub(s.InHand).Skips() > 0 }) {
		if p.skips, err = r.SkipCounts(ctx, id); err != nil {
			return nil, err
		}
	}
	s.readDefinition(p)
	p.index()
	p.findElsewhere(ctx)
	return p, nil
}

// readDefinition reads the job file as it is stored with the execution. Of a file that
// this program does not understand any more, the explanation says less.
func (s *Service) readDefinition(p *history) {
	d := p.exec.Definition
	file, carried, err := s.storedFile(p.exec.Definition, p.exec.JobName)
	if err != nil {
		return
	}
	p.uses = file.Uses(p.exec.Params)
	if compiled, err := file.Compile(s.deps(s.config.Registry)); err == nil {
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

// storedFile reads the definition of an execution as it was then. carried is the job as
// the application has it now; nil: it is a file on the disk.
func (s *Service) storedFile(d core.Definition, name string) (file, carried *jobfile.File, err error) {
	if d.Path == "" {
		carried = s.config.Files[name]
	}
	if carried != nil {
		file, err = carried.Earlier(d, s.config.Registry)
	} else {
		file, err = jobfile.ParseStored(d, name, s.config.Registry)
	}
	return file, carried, err
}

// jobOf compiles the job of an execution as it was then; nil where this program does not
// understand it any more.
func (s *Service) jobOf(ctx context.Context, e *core.JobExecution) *core.Job {
	if e.Definition.Path == "" && s.config.Files[e.JobName] == nil && s.config.Jobs != nil {
		if j, err := s.config.Jobs(ctx, e.JobName); err == nil {
			return j
		}
	}
	if e.Definition.Text == "" && s.config.Files[e.JobName] == nil {
		return nil
	}
	file, _, err := s.storedFile(e.Definition, e.JobName)
	if err != nil {
		return nil
	}
	j, err := file.Compile(s.deps(s.config.Registry))
	if err != nil {
		return nil
	}
	return j
}

// results are what each step did, in the order in which they began; first those that
// were passed.
func (p *history) results() []StepView {
	var list []StepView
	for name, h := range p.history {
		if h.Last.JobExecutionID < p.exec.ID && isFinal(h.Last) && !p.isPart(name) {
			list = append(list, p.result(h.Last))
		}
	}
	slices.SortFunc(list, func(a, b StepView) int { return int(p.history[a.Step].Last.ID - p.history[b.Step].Last.ID) })
	for _, s := range p.steps {
		if !p.isPart(s.Name) {
			list = append(list, p.result(s))
		}
	}
	return list
}

// isPart reports whether the name is that of a partition, of a step in the history.
func (p *history) isPart(name string) bool {
	step, _, is := strings.Cut(name, ":")
	_, known := p.history[step]
	return is && known
}

func (p *history) result(s core.StepExecution) StepView {
	view := p.service.stepView(&s)
	view.count(s.Carried())
	view.Kind, view.Position = p.kind(s.Name), positionText(s.Position, p.reads(s.Name))
	view.Undone, view.Resumed, view.SkippedUndone = s.InHand.Read, s.Before != core.Counters{}, 0
	view.CommittedIn, view.CommitProblem = p.committedIn(s)
	if names := p.parts[s.Name]; len(names) > 0 {
		view.Partitions = p.partitions(s.Name, names)
	}
	return view
}

// listedPartitions is how many partitions of a step are listed if not all are asked for.
const listedPartitions = 100

// partitions are those of a step: all of a few, else the first that are not complete.
func (p *history) partitions(step string, names []string) *PartitionsView {
	view := &PartitionsView{Total: len(names), Statuses: map[core.Status]int{}}
	for _, name := range names {
		record := p.partAt(name)
		view.Branches = view.Branches || record.IsBranch()
		view.Statuses[record.Status]++
		if len(names) > listedPartitions && record.Status == core.StatusCompleted {
			continue
		}
		if len(view.List) == listedPartitions {
			view.Omitted++
			continue
		}
		of := p.result(record)
		of.Step = strings.TrimPrefix(name, core.PartName(step, ""))
		view.List = append(view.List, of)
	}
	return view
}

// index finds partitions, records and kinds by name: there may be thousands of each.
func (p *history) index() {
	p.parts, p.at, p.kinds = map[string][]string{}, map[string]int{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.history)) {
		for i, c := range name {
			if c == ':' {
				p.parts[name[:i]] = append(p.parts[name[:i]], name)
			}
		}
	}
	for i := range p.steps {
		p.at[p.steps[i].Name] = i
	}
	if p.job == nil {
		return
	}
	for _, s := range slices.Concat(p.job.Flow.Steps(), p.job.Finally.Steps()) {
		p.kinds[s.Name()] = s.Kind()
	}
}

// partAt is the partition as of this execution where it ran in it, else as it is.
func (p *history) partAt(name string) core.StepExecution {
	if i, ok := p.at[name]; ok {
		return p.steps[i]
	}
	return p.history[name].Last
}

// kind is what the job file says that the step is: chunk, tasklet, ...; empty if it is
// not known.
func (p *history) kind(step string) string { return p.kinds[step] }

// reads is the file that the step reads; empty where it is not known.
func (p *history) reads(step string) string {
	for _, u := range p.uses {
		if u.Step == step && u.Kind == registry.KindReader && u.File {
			return u.Target
		}
	}
	return ""
}
