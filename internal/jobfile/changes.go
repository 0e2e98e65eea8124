package jobfile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Change is a difference between two definitions of a job, for an instance that began
// with the first one and continues with the second.
type Change struct {
	// Step is the step or child job; empty means the file as a whole.
	Step string `json:"step,omitempty"`
	// What is a sentence without its subject: "is new".
	What string `json:"what"`
	// Refused reports that a restart needs consent: committed work depends on the changed part.
	Refused bool `json:"refused,omitempty"`
	// NewDefinition means that the step began, has committed nothing, and takes the new definition (rule
	// F4a).
	NewDefinition bool `json:"new_definition,omitempty"`
	// Kept is the old value that a restart still uses after it accepts the change, because it was stored when
	// the step began. It is empty if the change takes effect.
	Kept string `json:"kept,omitempty"`
	// Place is the position in the new definition: "job.yaml:11:9", or for a definition made in Go "job bill:
	// step load: chunk.reader"; empty means that it is not there.
	Place string `json:"place,omitempty"`
	// FormerTimes says that the file is the same, and that the program read local times otherwise (rule D5).
	FormerTimes bool `json:"former_times,omitempty"`
}

// ChangedError refuses to restart an instance because the job file has changed in work
// that is committed (rule F4), or the meaning of its local times has (rule D5).
type ChangedError struct {
	Execution core.JobExecutionID
	Changes   []Change
	// Diff is a unified diff, without passwords, of the job file's lines with refused changes; empty means
	// that the definition was made in Go, or does not differ there.
	Diff string
}

// Error names the changes that are refused.
func (e *ChangedError) Error() string {
	return e.Summary(e.Execution) + ": " + strings.Join(e.Refused(), "; ")
}

// Summary is Error without the changes; last is the execution that it names.
func (e *ChangedError) Summary(last core.JobExecutionID) string {
	if !slices.ContainsFunc(e.Changes, func(c Change) bool { return c.Refused && !c.FormerTimes }) {
		return fmt.Sprintf("execution %d has committed work, and its times would be read otherwise now", last)
	}
	return fmt.Sprintf("the job file has changed since execution %d in what is committed", last)
}

// Refused returns the changes that are refused, with their places.
func (e *ChangedError) Refused() []string {
	var texts []string
	for _, c := range e.Changes {
		switch {
		case c.Refused && c.Place != "":
			texts = append(texts, c.Place+": "+c.String())
		case c.Refused:
			texts = append(texts, c.String())
		}
	}
	return texts
}

// String is the change as a sentence.
func (c Change) String() string {
	if c.Step == "" {
		return c.What
	}
	return "step " + c.Step + " " + c.What
}

// Restart is an instance that is to continue with a file.
type Restart struct {
	// Last is its newest execution, and Params are the parameters.
	Last    *core.JobExecution
	Params  core.Parameters
	History ports.History
	// Registry knows the components of both files.
	Registry *registry.Registry
}

// Changes compares the file with the definition of the instance's last execution, or of the newest one that
// may have written something, if that is another one. If the restart needs consent, it returns a
// *ChangedError with the changes.
func (f *File) Changes(ctx context.Context, r Restart) ([]Change, error) {
	last := r.Last
	if last.Definition.Text == "" || f.isAsBegun(last, last) { // that of a job made in Go
		return nil, nil
	}
	base, err := f.writtenUnder(ctx, r)
	if err != nil || f.isAsBegun(base, last) {
		return nil, err
	}
	steps, err := r.History.Records.LastSteps(ctx, last.InstanceID, last.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the steps of the last execution: %w", err)
	}
	before, unread := f.Earlier(base.Definition, r.Registry)
	c := &comparison{last: base.ID, database: r.History.Database, before: before, after: f, params: r.Params, history: steps}
	if unread != nil { // for example a component that the application no longer has
		c.before = f
	}
	if err := errors.Join(c.readCheckpoints(ctx, r), c.readChildren(ctx, r.History.Records)); err != nil {
		return nil, err
	}
	if err := c.judgeChildren(ctx, r); err != nil {
		return nil, err
	}
	changes := c.changes()
	if unread != nil {
		changes = c.changesOfUnread(unread)
	}
	if last.FormerTimes {
		changes = append(c.formerTimes(), changes...)
	}
	if slices.ContainsFunc(changes, func(c Change) bool { return c.Refused }) {
		refused := &ChangedError{Execution: base.ID, Changes: changes}
		if unread == nil {
			refused.Diff = c.allDiffs(changes)
		}
		return changes, refused
	}
	return changes, nil
}

// checkRestart refuses changes that committed work depends on, and returns the steps that take the new
// definition.
func (c *compiler) checkRestart(ctx context.Context, last *core.JobExecution, history ports.History, params core.Parameters) (taken []string, err error) {
	changes, err := c.file.Changes(ctx, Restart{Last: last, Params: params, History: history, Registry: c.deps.Registry})
	for _, change := range changes {
		if change.NewDefinition {
			taken = append(taken, change.Step)
		}
	}
	return taken, err
}

// Compare lists the differences for a restart (rules F4, F4a). A completed step must keep its name and its
// kind. A step that began, did not complete and has committed work must keep its kind and its input: a chunk
// step's reader and partitioner with their configs, the targets of its writers, and the file name and
// parameters of a child job, whose content the launch of the child judges. Configs are compared as the launch
// with the parameters binds them. Everything else may change, as may a step without committed work. history
// holds the newest executions of the instance's steps and partitions; steps in `finally` start from the
// beginning in each execution and are not compared.
func Compare(before, after *File, params core.Parameters, history map[string]ports.StepHistory) []Change {
	c := &comparison{before: before, after: after, params: params, history: history}
	return c.changes()
}

// comparison compares two definitions for a restart.
type comparison struct {
	last          core.JobExecutionID
	database      string // of the records
	before, after *File
	params        core.Parameters
	history       map[string]ports.StepHistory
	// elsewhere holds the steps and partitions with committed work in a checkpoint stored with the data.
	elsewhere map[string]bool
	// idle are the steps that run a job without committed work.
	idle map[string]bool
	// children are the unfinished steps with a child job that would refuse its new definition.
	children map[string]judgedChild
}

// readCheckpoints asks the databases of steps that began whether work is committed there:
// the record of a step may be older (rule C18).
func (c *comparison) readCheckpoints(ctx context.Context, r Restart) error {
	if r.History.Checkpoints == nil {
		return nil
	}
	c.elsewhere = map[string]bool{}
	for name, h := range c.history {
		step, _, _ := strings.Cut(name, ":")
		old := c.before.stepNamed(step)
		if old == nil || old.child != nil || isOver(h.Last) || h.Last.HasCommitted() {
			continue
		}
		database := (&compiler{file: c.before}).database(old)
		found, err := r.History.Checkpoints.HasCommitted(ctx, database, r.Last.InstanceID, name, h.Last.First)
		if err != nil {
			return err
		}
		c.elsewhere[name] = found
	}
	return nil
}

// readChildren reads which work the child jobs of unfinished steps have committed. A child that did not
// finish counts as committed.
func (c *comparison) readChildren(ctx context.Context, records ports.Explorer) error {
	c.idle = map[string]bool{}
	for name, h := range c.history {
		id := core.ChildOf(&h.Last)
		if id == 0 || isOver(h.Last) {
			continue
		}
		child, err := records.Execution(ctx, id)
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the child job of step %s: %w", name, err)
		}
		steps, err := records.LastSteps(ctx, child.InstanceID, 0)
		if err != nil {
			return fmt.Errorf("read the child job of step %s: %w", name, err)
		}
		c.idle[name] = child.Status == core.StatusFailed || child.Status == core.StatusStopped
		for _, s := range steps {
			ended := s.Last.Status == core.StatusFailed || s.Last.Status == core.StatusStopped
			c.idle[name] = c.idle[name] && ended && !s.Last.HasCommitted()
		}
	}
	return nil
}

func isOver(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}

func (c *comparison) changes() []Change {
	var changes []Change
	for _, s := range c.before.steps {
		if !s.element.list.finally {
			changes = append(changes, c.stepChanges(s)...)
		}
	}
	for _, s := range c.after.steps {
		if c.before.stepNamed(s.name) == nil && !s.element.list.finally {
			changes = append(changes, Change{Step: s.name, What: "is new"})
		}
	}
	return append(changes, c.decisionChanges()...)
}

// decisionChanges names the decisions that are different: a verdict that was taken is kept.
func (c *comparison) decisionChanges() []Change {
	var changes []Change
	c.after.flow.walk(func(e *elementDef) {
		if e.kind != decideKind {
			return
		}
		c.before.flow.walk(func(old *elementDef) {
			if old.name == e.name && old.kind == decideKind && nodeText(old.model.node) != nodeText(e.model.node) {
				changes = append(changes, Change{
					What: "decision " + e.name + " is different; a verdict that an earlier attempt took stays, but where it failed the job", Place: c.place(e.model.node),
				})
			}
		})
	})
	return changes
}

// changesOfUnread is changes for an old definition that can no longer be read: only a step that has committed
// work and did not complete needs it.
func (c *comparison) changesOfUnread(unread error) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(c.history)) {
		h := c.history[name]
		step, _, isPart := strings.Cut(name, ":")
		now := c.after.stepNamed(name)
		switch {
		case isPart && c.history[step].Last.ID != 0, now == nil && c.after.isFinally(name), c.isSplit(name):
		case isOver(h.Last) && now == nil:
			changes = append(changes, Change{Step: name, What: "has completed, and is not in the file any more", Refused: true})
		case isOver(h.Last):
		case h.Last.HasCommitted() || c.elsewhere[name] || len(c.partitions(name, h.Last)) > 0:
			what := "has committed work, and the definition as it was cannot be read any more, so what is different cannot be compared: "
			changes = append(changes, Change{Step: name, What: what + strings.Join(strings.Fields(unread.Error()), " "), Refused: true})
		case now != nil && c.isUncertain(now, h.Last):
			changes = append(changes, Change{Step: name, What: "may be different; what it did before may be committed"})
		case now != nil:
			changes = append(changes, c.newDefinitionOf(now))
		}
	}
	return changes
}

// isSplit reports whether the record belongs to a split on workers: its steps record its work.
func (c *comparison) isSplit(name string) bool {
	for part, h := range c.history {
		if h.Last.IsBranch() && strings.HasPrefix(part, core.PartName(name, "")) {
			return true
		}
	}
	return false
}

// isFinally reports whether the step starts from the beginning in each execution.
func (f *File) isFinally(name string) bool {
	return slices.ContainsFunc(f.steps, func(s *stepDef) bool { return s.name == name && s.element.list.finally })
}

// stepChanges compares a step of the old definition.
func (c *comparison) stepChanges(old *stepDef) []Change {
	h, ran := c.history[old.name]
	now := c.after.stepNamed(old.name)
	began := ran && !isOver(h.Last)
	switch {
	case began && !c.hasCommitted(old, h.Last):
		return c.newDefinition(old, now)
	case now == nil && ran:
		what := "has completed, and is not in the file any more"
		if began {
			what = "has committed work and not completed, and is not in the file any more"
		}
		if began && c.isUncertain(old, h.Last) {
			what = "may have committed work, has not completed, and is not in the file any more"
		}
		return []Change{{Step: old.name, What: what, Refused: true}}
	case now == nil:
		return []Change{{Step: old.name, What: "is not in the file any more"}}
	case ran && old.kind() != now.kind():
		return []Change{{Step: old.name, What: fmt.Sprintf("was a %s, and is a %s", old.kind(), now.kind()), Refused: true, Place: c.place(now.element.model.node)}}
	case began:
		if changes := c.inputChanges(old, now); len(changes) > 0 {
			return changes
		}
		if old.partitioner != nil && !c.hasCommittedParts(old) {
			return c.newDefinition(old, now)
		}
		if judged := c.children[old.name]; len(judged.changes) > 0 {
			return judged.changes
		}
	}
	what := otherChange(old, now)
	if what == "" {
		return nil
	}
	if began && c.isUncertain(old, h.Last) {
		what += "; what it did before may be committed"
	}
	if ran && h.Last.Status == core.StatusCompleted && !now.allowsStart() {
		what += "; it has completed and does not run again"
	}
	return []Change{{Step: old.name, What: what}}
}

// newDefinition is the change of a step that began and has committed nothing.
func (c *comparison) newDefinition(old, now *stepDef) []Change {
	switch {
	case now == nil:
		return []Change{{Step: old.name, What: "is not in the file any more; nothing of it was committed"}}
	case old.text() == now.text() && c.hasSameInput(old, now):
		if what := otherChange(old, now); what != "" {
			return []Change{{Step: old.name, What: what}}
		}
		return nil
	}
	return []Change{c.newDefinitionOf(now)}
}

func (c *comparison) newDefinitionOf(now *stepDef) Change {
	return Change{Step: now.name, What: "takes its new definition: nothing of it was committed", NewDefinition: true, Place: c.place(now.element.model.node)}
}

// hasSameInput reports whether the components of a step with an unchanged text are bound to the same values.
func (c *comparison) hasSameInput(old, now *stepDef) bool {
	return old.child != nil ||
		len(c.useChanges(old.name, "", old.partitioner, now.partitioner, anyKey))+len(c.useChanges(old.name, "", old.reader, now.reader, anyKey)) == 0
}

// hasCommitted reports whether a restart depends on work of an unfinished step, according to its record, the
// checkpoint stored with the data, and its partitions with committed work. The plan of partitions counts as
// committed, for their partitioner.
func (c *comparison) hasCommitted(old *stepDef, last core.StepExecution) bool {
	if c.idle[old.name] {
		last.Context = last.Context.Clone()
		last.Context.Delete(core.ChildKey)
	}
	if old.partitioner == nil {
		return last.HasCommitted() || c.elsewhere[old.name] || c.isUncertain(old, last)
	}
	return len(c.partitions(old.name, last)) > 0
}

// isUncertain reports whether a tasklet may have committed work without a record: outside of a transaction,
// or in another database than the records when its process was lost.
func (c *comparison) isUncertain(old *stepDef, last core.StepExecution) bool {
	if old.tasklet == nil {
		return false
	}
	compiled := &compiler{file: c.before}
	switch compiled.attr(old).Propagation {
	case tx.NotSupported, tx.Never, tx.Supports:
		return true
	case "", tx.Required, tx.RequiresNew, tx.Nested, tx.Mandatory:
	}
	isLost := last.Error == core.LostOwner || last.Status.IsRunning()
	return isLost && compiled.database(old) != c.database
}

// partitions returns the planned partitions of the unfinished step by name.
func (c *comparison) partitions(step string, last core.StepExecution) map[string]core.StepExecution {
	found := map[string]core.StepExecution{}
	for name, h := range c.history {
		if strings.HasPrefix(name, core.PartName(step, "")) && h.Last.ID >= last.First {
			found[name] = h.Last
		}
	}
	return found
}

func (c *comparison) hasCommittedParts(old *stepDef) bool {
	for name, s := range c.partitions(old.name, c.history[old.name].Last) {
		if s.Status == core.StatusCompleted || s.HasCommitted() || c.elsewhere[name] {
			return true
		}
	}
	return false
}

// otherChange describes the difference of a step that a restart may run, or returns "".
func otherChange(old, now *stepDef) string {
	switch {
	case old.text() != now.text():
		return "is different"
	case old.childHash() != now.childHash():
		return "has a job file that is different, which the launch of that job judges"
	}
	return ""
}

// childHash is the hash of a child job's definition. It is empty for another kind of step or for a job that
// can no longer be read.
func (s *stepDef) childHash() string {
	if s.child == nil || s.child.file == nil {
		return ""
	}
	return s.child.file.Definition().Hash
}

func (f *File) stepNamed(name string) *stepDef {
	for _, s := range f.steps {
		if s.name == name && !s.element.list.finally {
			return s
		}
	}
	return nil
}

// kind is the step's kind as the history records it.
func (s *stepDef) kind() string {
	switch {
	case s.child != nil:
		return "child job"
	case s.partitioner != nil:
		return "partitioned step"
	case s.tasklet != nil:
		return "tasklet step"
	case s.tasks != nil:
		return "step of tasks"
	}
	return "chunk step"
}

func (s *stepDef) allowsStart() bool {
	return s.child == nil && s.model.AllowStartIfComplete
}

func (s *stepDef) text() string { return nodeText(s.element.model.node) }

func (c *comparison) place(n *yamlfile.Node) string {
	if place := c.after.doc.Place(n); place != "" {
		return place
	}
	return n.Position(c.after.doc.Path)
}
