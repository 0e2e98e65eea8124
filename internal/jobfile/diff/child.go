package diff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

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
