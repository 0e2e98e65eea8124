package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// explanation is what `explain` says, as data; Text is the same in English.
type explanation struct {
	Execution  int64          `json:"execution"`
	Job        string         `json:"job"`
	Status     string         `json:"status"`
	Exit       string         `json:"exit,omitempty"`
	Attempt    int            `json:"attempt"`
	Parameters map[string]any `json:"parameters"`
	// Newest is the newest execution of the instance: the one that a restart is about.
	Newest    int64             `json:"newest"`
	Started   *time.Time        `json:"started,omitempty"`
	Ended     *time.Time        `json:"ended,omitempty"`
	Cause     *causeRecord      `json:"cause,omitempty"`
	Owner     *ownerRecord      `json:"owner,omitempty"` // while it runs
	Lease     lease             `json:"lease,omitempty"`
	Steps     []committedRecord `json:"steps,omitempty"`
	Files     []fileRecord      `json:"files,omitempty"`
	Skipped   []skipCountRecord `json:"skipped,omitempty"`
	Decisions []verdictRecord   `json:"decisions,omitempty"`
	Gates     []gateRecord      `json:"gates,omitempty"`
	// Restart is what a restart does; nil: there is none, and Refused says why, or
	// the job file that is stored does not tell.
	Restart  *restartPlan  `json:"restart,omitempty"`
	Refused  string        `json:"refused,omitempty"`
	Commands []commandLine `json:"commands"`
	Text     []string      `json:"text"` // paragraphs
}

// causeRecord is why an execution ended so.
type causeRecord struct {
	Step  string `json:"step,omitempty"`
	Item  string `json:"item,omitempty"`
	Class string `json:"class,omitempty"`
	Error string `json:"error"`
}

// committedRecord is what a step has committed, over all attempts that it went on
// from.
type committedRecord struct {
	Step string `json:"step"`
	// Execution is another one for a step that was passed.
	Execution int64  `json:"execution"`
	Status    string `json:"status"`
	Exit      string `json:"exit,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Read      int64  `json:"read"`
	Written   int64  `json:"written"`
	Filtered  int64  `json:"filtered"`
	Skipped   int64  `json:"skipped"`
	Commits   int64  `json:"commits"`
	// Undone is what it had read of the chunk in hand, which was rolled back.
	Undone int64 `json:"rolled_back_read,omitempty"`
	// Resumed says that it went on from earlier attempts, which are counted here too.
	Resumed bool `json:"resumed,omitempty"`
	// Position is up to where it is committed, in words.
	Position   string            `json:"position,omitempty"`
	Error      string            `json:"error,omitempty"`
	Partitions []committedRecord `json:"partitions,omitempty"`
}

// fileRecord is a file that a step writes. It is in view once the step completed;
// before, what is committed is in Part.
type fileRecord struct {
	Step   string `json:"step"`
	Path   string `json:"path"`
	InView bool   `json:"in_view"`
	Part   string `json:"part,omitempty"`
	Bytes  *int64 `json:"committed_bytes,omitempty"` // of Part
}

type skipCountRecord struct {
	Step  string `json:"step"`
	Phase string `json:"phase"`
	Class string `json:"class"`
	Count int64  `json:"count"`
	Left  int64  `json:"left"` // not redriven
}

type verdictRecord struct {
	Element string `json:"element"`
	Verdict string `json:"verdict"`
	// Target is where it led: an element, or end, fail, stop; empty: not known.
	Target string `json:"target,omitempty"`
}

type gateRecord struct {
	Step string `json:"step,omitempty"` // empty: of the job
	Gate string `json:"gate"`
	Held bool   `json:"held"`
}

// commandLine is a way on.
type commandLine struct {
	To      string `json:"to"`
	Command string `json:"command"`
}

func (p *program) newExplanation(f *past) *explanation {
	e := &explanation{
		Execution: int64(f.exec.ID), Job: f.exec.JobName, Status: string(f.exec.Status), Exit: f.exec.ExitCode, Attempt: f.exec.Attempt,
		Parameters: map[string]any{}, Newest: int64(f.newest.ID), Started: timeRecord(f.exec.StartedAt), Ended: timeRecord(f.exec.EndedAt),
	}
	for _, q := range f.exec.Params.All() {
		e.Parameters[q.Name] = parameterRecord(q)
	}
	if f.exec.Status.IsRunning() {
		e.Owner = &ownerRecord{Host: f.exec.Owner.Host, PID: f.exec.Owner.PID, LeaseUntil: timeRecord(f.exec.LeaseUntil)}
		e.Lease = p.leaseOf(f.exec)
	}
	e.Cause = f.cause()
	e.Steps = f.committed()
	e.Files = f.files()
	for _, c := range f.skips {
		e.Skipped = append(e.Skipped, skipCountRecord{c.Step, string(c.Phase), c.Class, c.Count, c.Left})
	}
	e.Decisions, e.Gates = f.decisions(), f.gates()
	p.planRestart(e, f)
	e.Text = p.paragraphs(e, f)
	return e
}

// cause is what decided about the end; nil for one that completed or runs.
func (f *past) cause() *causeRecord {
	if f.exec.Status == core.StatusCompleted || f.exec.Status.IsRunning() {
		return nil
	}
	c := &causeRecord{Error: oneLine(f.exec.Error)}
	for _, s := range f.steps {
		if s.Error == "" || s.Status == core.StatusCompleted || s.Status == core.StatusStopped && f.exec.Status != core.StatusStopped {
			continue
		}
		named := strings.HasPrefix(f.exec.Error, "step "+s.Name+": ")
		if c.Step != "" && !named {
			continue
		}
		c.Step, c.Error, c.Class, c.Item = s.Name, oneLine(s.Error), stored(s, core.ErrorClassKey), stored(s, core.ErrorItemKey)
		if named {
			break
		}
	}
	if c.Step == "" && c.Error == "" {
		return nil
	}
	return c
}

func stored(s core.StepExecution, key string) string {
	if s.Context == nil {
		return ""
	}
	value, _ := s.Context.Get(key)
	text, _ := value.(string)
	return text
}

// committed is what each step did, in the order in which they began; first those
// that were passed.
func (f *past) committed() []committedRecord {
	var records []committedRecord
	for _, name := range sortedKeys(f.history) {
		s := f.history[name].Last
		if s.JobExecutionID < f.exec.ID && isOver(s) && !f.isPart(name) {
			records = append(records, f.record(s))
		}
	}
	slices.SortFunc(records, func(a, b committedRecord) int { return int(f.history[a.Step].Last.ID - f.history[b.Step].Last.ID) })
	for _, s := range f.steps {
		if !f.isPart(s.Name) {
			records = append(records, f.record(s))
		}
	}
	return records
}

// isPart reports whether the name is that of a partition, of a step that is there.
func (f *past) isPart(name string) bool {
	step, _, is := strings.Cut(name, ":")
	_, known := f.history[step]
	return is && known
}

func (f *past) record(s core.StepExecution) committedRecord {
	c := s.Carried()
	r := committedRecord{
		Step: s.Name, Execution: int64(s.JobExecutionID), Status: string(s.Status), Exit: s.ExitCode, Kind: f.kind(s.Name),
		Read: c.Read, Written: c.Write, Filtered: c.Filter, Skipped: c.Skips(), Commits: c.Commit, Error: oneLine(s.Error),
		Position: positionText(s.Position, f.reads(s.Name)), Resumed: s.Before != core.Counters{}, Undone: s.InHand.Read,
	}
	for _, name := range sortedKeys(f.history) {
		if part, is := strings.CutPrefix(name, core.PartName(s.Name, "")); is {
			of := f.record(f.partAt(name))
			of.Step = part
			r.Partitions = append(r.Partitions, of)
		}
	}
	return r
}

// partAt is the partition as of this execution where it ran in it, else as it is.
func (f *past) partAt(name string) core.StepExecution {
	for _, s := range slices.Backward(f.steps) {
		if s.Name == name {
			return s
		}
	}
	return f.history[name].Last
}

// kind is what the job file says that the step is: chunk, tasklet, ...; empty if
// that is not known.
func (f *past) kind(step string) string {
	if f.job == nil {
		return ""
	}
	for _, s := range slices.Concat(f.job.Flow.Steps(), f.job.Finally.Steps()) {
		if s.Name() == step {
			return s.Kind()
		}
	}
	return ""
}

// reads is the file that the step reads, empty where that is not known.
func (f *past) reads(step string) string {
	for _, u := range f.uses {
		if u.Step == step && u.Kind == registry.KindReader && u.File {
			return u.Target
		}
	}
	return ""
}

// files are those that the steps of this execution write, and what of them is
// there.
func (f *past) files() []fileRecord {
	var files []fileRecord
	for _, s := range f.steps {
		writer := 0
		for _, u := range f.uses {
			if u.Step != s.Name || u.Kind != registry.KindWriter {
				continue
			}
			if u.File && u.Target != "" {
				file := fileRecord{Step: s.Name, Path: u.Target, InView: s.Status == core.StatusCompleted && s.ExitCode != core.ExitNoop}
				if part, n, ok := writerFile(s.Position, writer); ok && !file.InView {
					file.Part, file.Bytes = u.Target+part, &n
				}
				if s.ExitCode != core.ExitNoop {
					files = append(files, file)
				}
			}
			writer++
		}
	}
	return files
}

// decisions are the verdicts that the instance remembers.
func (f *past) decisions() []verdictRecord {
	var list []verdictRecord
	if f.exec.Context == nil {
		return nil
	}
	for _, key := range f.exec.Context.Keys() {
		value, _ := f.exec.Context.Get(key)
		text, _ := value.(string)
		_, verdict, _ := strings.Cut(text, " ")
		if element, is := strings.CutPrefix(key, decidedKey); is {
			list = append(list, verdictRecord{element, verdict, f.leadsTo(element, verdict)})
		}
		if element, is := strings.CutPrefix(key, whenKey); is && verdict == "false" {
			list = append(list, verdictRecord{Element: element, Verdict: core.ExitNoop})
		}
	}
	return list
}

// leadsTo is where a decision went with its verdict.
func (f *past) leadsTo(decision, verdict string) string {
	if f.job == nil {
		return ""
	}
	e, ok := findElement(f.job.Flow, decision)
	if !ok {
		return ""
	}
	target, ok := core.Next(e.Edges(), core.StatusCompleted, verdict)
	switch {
	case !ok:
		return ""
	case target.Kind == core.TargetElement:
		return target.Name
	}
	return string(target.Kind)
}

func findElement(f core.Flow, name string) (core.Element, bool) {
	for _, e := range f.Elements {
		if e.ElementName() == name {
			return e, true
		}
		for _, inner := range core.Flows(e) {
			if found, ok := findElement(inner, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

func (f *past) gates() []gateRecord {
	var list []gateRecord
	for _, s := range f.steps {
		if s.Gate != "" {
			list = append(list, gateRecord{s.Name, s.Gate, s.ExitCode != core.ExitExpectFailed})
		}
	}
	if f.exec.Gate != "" {
		list = append(list, gateRecord{"", f.exec.Gate, f.exec.ExitCode != core.ExitExpectFailed})
	}
	return list
}
