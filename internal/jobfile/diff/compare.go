package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Compare lists the differences for a restart.
func Compare(before, after *tree.File, params core.Parameters, history map[string]ports.StepHistory) []Change {
	c := &comparison{before: before, after: after, params: params, history: history}
	return c.changes()
}

// Between returns the differences between the definitions of two executions, and their unified diff.
func Between(before *tree.File, execution core.JobExecutionID, after *tree.File, params core.Parameters) ([]Change, string) {
	c := &comparison{last: execution, before: before, after: after, params: params}
	return c.changes(), c.diff(nil)
}

// comparison compares two definitions for a restart (rules F4, F4a). A completed step keeps its
// name and kind. A step with committed work keeps its kind and input: a chunk step's reader and
// partitioner with their bound configs, its writers' targets, a child job's file name and
// parameters. Everything else may change; `finally` is not compared.
type comparison struct {
	last          core.JobExecutionID
	database      string // of the records
	before, after *tree.File
	params        core.Parameters
	history       map[string]ports.StepHistory
	elsewhere     map[string]bool
	idle          map[string]bool
	children      map[string]judgedChild
}

type judgedChild struct {
	changes []Change // of the step that runs it
	diff    string   // of the child's file
}

func (c *comparison) changes() []Change {
	var changes []Change
	for _, s := range c.before.Steps {
		if !s.Element.List.Finally {
			changes = append(changes, c.stepChanges(s)...)
		}
	}
	for _, s := range c.after.Steps {
		if c.before.StepNamed(s.Name) == nil && !s.Element.List.Finally {
			changes = append(changes, Change{Step: s.Name, What: "is new"})
		}
	}
	return append(changes, c.decisionChanges()...)
}

func (c *comparison) decisionChanges() []Change {
	var changes []Change
	c.after.Flow.Walk(func(e *tree.Element) {
		if e.Kind != language.DecideKind {
			return
		}
		c.before.Flow.Walk(func(old *tree.Element) {
			if old.Name == e.Name && old.Kind == language.DecideKind && nodeText(old.Model.Node) != nodeText(e.Model.Node) {
				changes = append(changes, Change{
					What: "decision " + e.Name + " is different; the verdict of an earlier attempt is kept unless it failed the job", Place: c.place(e.Model.Node),
				})
			}
		})
	})
	return changes
}

func (c *comparison) stepChanges(old *tree.Step) []Change {
	h, ran := c.history[old.Name]
	now := c.after.StepNamed(old.Name)
	began := ran && !isOver(h.Last)
	switch {
	case began && !c.hasCommitted(old, h.Last):
		return c.newDefinition(old, now)
	case now == nil && ran:
		what := "has completed, and is no longer in the file"
		if began {
			what = "has committed work and not completed, and is no longer in the file"
		}
		if began && c.isUncertain(old, h.Last) {
			what = "may have committed work, has not completed, and is no longer in the file"
		}
		return []Change{{Step: old.Name, What: what, Refused: true}}
	case now == nil:
		return []Change{{Step: old.Name, What: "is no longer in the file"}}
	case ran && kindOf(old) != kindOf(now):
		return []Change{{Step: old.Name, What: fmt.Sprintf("was a %s, and is a %s", kindOf(old), kindOf(now)), Refused: true, Place: c.place(now.Element.Model.Node)}}
	case began:
		if changes := c.inputChanges(old, now); len(changes) > 0 {
			return changes
		}
		if old.Partitioner != nil && !c.hasCommittedParts(old) {
			return c.newDefinition(old, now)
		}
		if judged := c.children[old.Name]; len(judged.changes) > 0 {
			return judged.changes
		}
	}
	what := otherChange(old, now)
	if what == "" {
		return nil
	}
	if began && c.isUncertain(old, h.Last) {
		what += "; its earlier work may be committed"
	}
	if ran && h.Last.Status == core.StatusCompleted && !now.AllowsStart() {
		what += "; it has completed and does not run again"
	}
	return []Change{{Step: old.Name, What: what}}
}

func (c *comparison) newDefinition(old, now *tree.Step) []Change {
	switch {
	case now == nil:
		return []Change{{Step: old.Name, What: "is no longer in the file; it has committed nothing"}}
	case stepText(old) == stepText(now) && c.hasSameInput(old, now):
		if what := otherChange(old, now); what != "" {
			return []Change{{Step: old.Name, What: what}}
		}
		return nil
	}
	return []Change{c.newDefinitionOf(now)}
}

func (c *comparison) newDefinitionOf(now *tree.Step) Change {
	return Change{Step: now.Name, What: "takes its new definition: it has committed nothing", NewDefinition: true, Place: c.place(now.Element.Model.Node)}
}

func (c *comparison) hasSameInput(old, now *tree.Step) bool {
	return old.Child != nil ||
		len(c.useChanges(old.Name, "", old.Partitioner, now.Partitioner, tree.AnyKey))+len(c.useChanges(old.Name, "", old.Reader, now.Reader, tree.AnyKey)) == 0
}

// A plan of partitions counts as committed.
func (c *comparison) hasCommitted(old *tree.Step, last core.StepExecution) bool {
	if c.idle[old.Name] {
		last.Context = last.Context.Clone()
		last.Context.Delete(ports.ChildKey)
	}
	if old.Partitioner == nil {
		return last.HasCommitted() || c.elsewhere[old.Name] || c.isUncertain(old, last)
	}
	return len(c.partitions(old.Name, last)) > 0
}

// isUncertain reports whether a tasklet may have committed work without a record.
func (c *comparison) isUncertain(old *tree.Step, last core.StepExecution) bool {
	if old.Tasklet == nil {
		return false
	}
	switch c.before.AttrOf(old).Propagation {
	case tx.NotSupported, tx.Never, tx.Supports:
		return true
	case "", tx.Required, tx.RequiresNew, tx.Nested, tx.Mandatory:
	}
	isLost := last.Error == ports.LostOwner || last.Status.IsRunning()
	return isLost && c.before.DatabaseOf(old) != c.database
}

func (c *comparison) partitions(step string, last core.StepExecution) map[string]core.StepExecution {
	found := map[string]core.StepExecution{}
	for name, h := range c.history {
		if strings.HasPrefix(name, core.PartName(step, "")) && h.Last.ID >= last.First {
			found[name] = h.Last
		}
	}
	return found
}

func (c *comparison) hasCommittedParts(old *tree.Step) bool {
	for name, s := range c.partitions(old.Name, c.history[old.Name].Last) {
		if s.Status == core.StatusCompleted || s.HasCommitted() || c.elsewhere[name] {
			return true
		}
	}
	return false
}

func otherChange(old, now *tree.Step) string {
	switch {
	case stepText(old) != stepText(now):
		return "is different"
	case childHash(old) != childHash(now):
		return "has a changed job file, which the launch of that job checks"
	}
	return ""
}

func childHash(s *tree.Step) string {
	if s.Child == nil || s.Child.File == nil {
		return ""
	}
	return s.Child.File.Definition().Hash
}

func kindOf(s *tree.Step) string {
	switch {
	case s.Child != nil:
		return "child job"
	case s.Partitioner != nil:
		return "partitioned step"
	case s.Tasklet != nil:
		return "tasklet step"
	case s.Tasks != nil:
		return "step of tasks"
	}
	return "chunk step"
}

func stepText(s *tree.Step) string { return nodeText(s.Element.Model.Node) }

func isOver(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}

func isFinally(f *tree.File, name string) bool {
	return slices.ContainsFunc(f.Steps, func(s *tree.Step) bool { return s.Name == name && s.Element.List.Finally })
}

func (c *comparison) isSplit(name string) bool {
	for part, h := range c.history {
		if h.Last.IsBranch() && strings.HasPrefix(part, core.PartName(name, "")) {
			return true
		}
	}
	return false
}

func (c *comparison) place(n *yamlfile.Node) string {
	if place := c.after.Doc.Place(n); place != "" {
		return place
	}
	return n.Position(c.after.Doc.Path)
}
