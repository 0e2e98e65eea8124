package diff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/check"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Change is a difference between two definitions of a job's instance.
type Change struct {
	// Step is empty for the file as a whole.
	Step string `json:"step,omitempty"`
	// What is a sentence without its subject: "is new".
	What string `json:"what"`
	// Refused: a restart needs consent, as committed work depends on it.
	Refused bool `json:"refused,omitempty"`
	// NewDefinition: the step has committed nothing and takes the new definition (rule F4a).
	NewDefinition bool `json:"new_definition,omitempty"`
	// Kept is the old value that a restart still uses, stored when the step began; empty if the
	// change takes effect.
	Kept string `json:"kept,omitempty"`
	// Place is "job.yaml:11:9", or "job bill: step load: chunk.reader" for Go; empty if not there.
	Place string `json:"place,omitempty"`
	// FormerTimes: the same file, but the program read local times otherwise (rule D5).
	FormerTimes bool `json:"former_times,omitempty"`
}

// String is the change as a sentence.
func (c Change) String() string {
	if c.Step == "" {
		return c.What
	}
	return "step " + c.Step + " " + c.What
}

// ChangedError refuses a restart: the job file has changed in committed work (rule
// F4), or the meaning of local times has (rule D5).
type ChangedError struct {
	Execution core.JobExecutionID
	Changes   []Change
	// Diff is a unified diff, without passwords; empty for a definition made in Go.
	Diff string
}

// Error names the changes that are refused.
func (e *ChangedError) Error() string {
	return e.Summary(e.Execution) + ": " + strings.Join(e.Refused(), "; ")
}

// Summary is Error without the changes; last is the execution that it names.
func (e *ChangedError) Summary(last core.JobExecutionID) string {
	if !slices.ContainsFunc(e.Changes, func(c Change) bool { return c.Refused && !c.FormerTimes }) {
		return fmt.Sprintf("execution %d has committed work, and this version would read its times differently", last)
	}
	return fmt.Sprintf("the job file has changed since execution %d in what committed work depends on", last)
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

// Restart is an instance that is to continue with a file.
type Restart struct {
	Last     *core.JobExecution
	Params   core.Parameters
	History  ports.History
	Registry *registry.Registry
}

// Of compares the file with the instance's newest execution that may have written something; a
// *ChangedError if the restart needs consent.
func Of(ctx context.Context, f *tree.File, r Restart) ([]Change, error) {
	last := r.Last
	if last.Definition.Text == "" || isAsBegun(f, last, last) { // that of a job made in Go
		return nil, nil
	}
	base, err := writtenUnder(ctx, f, r)
	if err != nil || isAsBegun(f, base, last) {
		return nil, err
	}
	steps, err := r.History.Records.LastSteps(ctx, last.InstanceID, last.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the steps of the last execution: %w", err)
	}
	before, unread := check.Earlier(f, base.Definition, r.Registry)
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

// readCheckpoints asks the databases whether work is committed: a step's record may be
// older (rule C18).
func (c *comparison) readCheckpoints(ctx context.Context, r Restart) error {
	if r.History.Checkpoints == nil {
		return nil
	}
	c.elsewhere = map[string]bool{}
	for name, h := range c.history {
		step, _, _ := strings.Cut(name, ":")
		old := c.before.StepNamed(step)
		if old == nil || old.Child != nil || isOver(h.Last) || h.Last.HasCommitted() {
			continue
		}
		database := c.before.DatabaseOf(old)
		found, err := r.History.Checkpoints.HasCommitted(ctx, database, r.Last.InstanceID, name, h.Last.First)
		if err != nil {
			return err
		}
		c.elsewhere[name] = found
	}
	return nil
}

// A child that did not finish counts as committed.
func (c *comparison) readChildren(ctx context.Context, records ports.Explorer) error {
	c.idle = map[string]bool{}
	for name, h := range c.history {
		id := ports.ChildOf(&h.Last)
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

func (c *comparison) changesOfUnread(unread error) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(c.history)) {
		h := c.history[name]
		step, _, isPart := strings.Cut(name, ":")
		now := c.after.StepNamed(name)
		switch {
		case isPart && c.history[step].Last.ID != 0, now == nil && isFinally(c.after, name), c.isSplit(name):
		case isOver(h.Last) && now == nil:
			changes = append(changes, Change{Step: name, What: "has completed, and is no longer in the file", Refused: true})
		case isOver(h.Last):
		case h.Last.HasCommitted() || c.elsewhere[name] || len(c.partitions(name, h.Last)) > 0:
			what := "has committed work, and its recorded definition can no longer be read, so the two cannot be compared: "
			changes = append(changes, Change{Step: name, What: what + strings.Join(strings.Fields(unread.Error()), " "), Refused: true})
		case now != nil && c.isUncertain(now, h.Last):
			changes = append(changes, Change{Step: name, What: "may be different; its earlier work may be committed"})
		case now != nil:
			changes = append(changes, c.newDefinitionOf(now))
		}
	}
	return changes
}

// writtenUnder returns the newest execution that may have written under its definition: one that
// was refused left the previous one's work.
func writtenUnder(ctx context.Context, f *tree.File, r Restart) (*core.JobExecution, error) {
	base := r.Last
	for base.Attempt > 1 && base.AnewSince() == 0 && base.RedriveOf == 0 {
		wrote, err := mayHaveWritten(ctx, f, r, base)
		if err != nil || wrote {
			return base, err
		}
		before, err := r.History.Records.Executions(ctx, ports.ExecutionFilter{Instance: base.InstanceID, Before: base.ID, Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("read the execution before %d: %w", base.ID, err)
		}
		if len(before) == 0 || before[0].Definition.Text == "" {
			return base, nil
		}
		base = &before[0]
	}
	return base, nil
}

// mayHaveWritten is false if the execution failed with all its steps, and these are chunk steps
// without partitions in the repository's database that have counted nothing.
func mayHaveWritten(ctx context.Context, f *tree.File, r Restart, e *core.JobExecution) (bool, error) {
	if e.Status != core.StatusFailed {
		return true, nil
	}
	steps, err := r.History.Records.Steps(ctx, e.ID)
	if err != nil {
		return true, fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
	}
	was, unread := check.Earlier(f, e.Definition, r.Registry)
	if unread != nil { // for example a component that no longer exists: which work ran is unknown
		return true, nil //nolint:nilerr // what compares the file says so
	}
	for _, s := range steps {
		step := was.StepNamed(s.Name)
		isChunk := step != nil && step.Child == nil && step.Partitioner == nil && step.Tasklet == nil && step.Tasks == nil
		own := s.Counters
		own.Rollback = 0
		// If a step's data is in another database, its record may be older than its checkpoint.
		isChunk = isChunk && was.DatabaseOf(step) == r.History.Database
		if !isChunk || s.Status != core.StatusFailed || own != (core.Counters{}) || strings.Contains(s.Error, ports.LostOwner) {
			return true, nil
		}
	}
	return false, nil
}

func isAsBegun(f *tree.File, e, last *core.JobExecution) bool {
	return e.Definition.Hash == f.Definition().Hash && !last.FormerTimes
}

// formerTimes refuses to continue chunk steps with committed work after a program that read times
// without an offset as UTC (rule D5). Which readers see such a time is not known, so each chunk
// step counts.
func (c *comparison) formerTimes() []Change {
	if c.after.Clock.Zone == time.UTC {
		return nil
	}
	var changes []Change
	for _, s := range c.after.Steps {
		old, h := c.before.StepNamed(s.Name), c.history[s.Name]
		if s.Reader == nil || old == nil || s.Element.List.Finally || h.Last.ID == 0 || isOver(h.Last) {
			continue
		}
		committed := c.hasCommitted(old, h.Last)
		if old.Partitioner != nil {
			committed = c.hasCommittedParts(old)
		}
		if committed {
			changes = append(changes, Change{
				Step: s.Name, Refused: true, FormerTimes: true, Place: c.place(s.Element.Model.Node),
				What: "has committed work: an earlier version read times without an offset as UTC, and they are now times of " + c.after.Clock.Zone.String(),
			})
		}
	}
	return changes
}

// judgeChildren compares the definitions of the child jobs that unfinished steps would continue, as the
// launch of each child does: a restart that would end at a child's refusal is refused before anything runs.
func (c *comparison) judgeChildren(ctx context.Context, r Restart) error {
	c.children = map[string]judgedChild{}
	for name, h := range c.history {
		now := c.after.StepNamed(name)
		if isOver(h.Last) || c.idle[name] || now == nil || now.Child == nil || now.Child.File == nil {
			continue
		}
		last, err := c.lastOfChild(ctx, r, now.Child.File.Name, &h.Last)
		if err != nil {
			return fmt.Errorf("read the child job of step %s: %w", name, err)
		}
		if last == nil || last.Status == core.StatusCompleted {
			continue
		}
		_, err = Of(ctx, now.Child.File, Restart{Last: last, Params: last.Params, History: r.History, Registry: r.Registry})
		var changed *ChangedError
		if errors.As(err, &changed) {
			c.children[name], err = judgedOf(name, last.JobName, changed), nil
		}
		if err != nil {
			return fmt.Errorf("compare the child job of step %s: %w", name, err)
		}
	}
	return nil
}

// lastOfChild is found by the parameters stored before the child began; nil means none has begun.
func (c *comparison) lastOfChild(ctx context.Context, r Restart, job string, step *core.StepExecution) (*core.JobExecution, error) {
	if step.Context == nil {
		return nil, nil //nolint:nilnil // no child is not a failure
	}
	stored, is := step.Context.Get(ports.ChildKey)
	text, isText := stored.(string)
	if !is || !isText {
		return nil, nil //nolint:nilnil // as above
	}
	var params core.Parameters
	if err := json.Unmarshal([]byte(text), &params); err != nil {
		return nil, fmt.Errorf("the step's context, %s: %w", ports.ChildKey, err)
	}
	last, err := r.History.Records.LastExecution(ctx, job, params.Key())
	if errors.Is(err, core.ErrNotFound) || err == nil && last.ID < r.Last.AnewSince() {
		return nil, nil //nolint:nilnil // as above
	}
	return last, err
}

func judgedOf(step, job string, changed *ChangedError) judgedChild {
	judged := judgedChild{diff: changed.Diff}
	for _, inner := range changed.Changes {
		if inner.Refused {
			judged.changes = append(judged.changes, Change{
				Step: step, What: "runs job " + job + ", whose " + inner.String(), Refused: true, Place: inner.Place, FormerTimes: inner.FormerTimes,
			})
		}
	}
	return judged
}

func (c *comparison) allDiffs(changes []Change) string {
	var diffs strings.Builder
	diffs.WriteString(c.diff(changes))
	for _, s := range c.after.Steps {
		diffs.WriteString(c.children[s.Name].diff)
	}
	return diffs.String()
}
