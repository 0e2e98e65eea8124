package diff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/check"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// writtenUnder returns the newest execution of the instance that may have written something under its
// definition. An execution that was refused when its steps began left the previous one's work, so a file is
// compared with the previous one.
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

// mayHaveWritten reports whether an execution may have left results. It has not if it failed together with
// all its steps, and these are chunk steps without partitions that work in the repository's database and have
// counted nothing.
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
		if !isChunk || s.Status != core.StatusFailed || own != (core.Counters{}) || strings.Contains(s.Error, core.LostOwner) {
			return true, nil
		}
	}
	return false, nil
}

// isAsBegun reports whether an execution ran this file, and last read its local times as this program does: then nothing is
// to be compared.
func isAsBegun(f *tree.File, e, last *core.JobExecution) bool {
	return e.Definition.Hash == f.Definition().Hash && !last.FormerTimes
}

// formerTimes refuses to continue chunk steps with committed work after an execution whose program read a time without an
// offset as UTC: the rest of their rows would have other times than the rows that are written (rule D5). Which readers,
// writers and expressions see such a time is not known, so each chunk step counts.
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

// lastOfChild is the execution that the step's child would continue. It is found by the parameters that the
// step stored before the child began; nil means that none has begun since the job last started from its
// beginning.
func (c *comparison) lastOfChild(ctx context.Context, r Restart, job string, step *core.StepExecution) (*core.JobExecution, error) {
	if step.Context == nil {
		return nil, nil //nolint:nilnil // no child is not a failure
	}
	stored, is := step.Context.Get(core.ChildKey)
	text, isText := stored.(string)
	if !is || !isText {
		return nil, nil //nolint:nilnil // as above
	}
	var params core.Parameters
	if err := json.Unmarshal([]byte(text), &params); err != nil {
		return nil, fmt.Errorf("the step's context, %s: %w", core.ChildKey, err)
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
