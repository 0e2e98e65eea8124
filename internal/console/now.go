package console

import (
	"slices"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// nowView is the first page: executions that need a person, run, or ended last.
type nowView struct {
	Failed  []executionLine
	Running []progressLine
	Ended   []executionLine
}

func (v ofList) now() (*page, error) {
	ctx := v.r.Context()
	var view nowView
	var err error
	if view.Running, err = v.progress(operator.ProgressRequest{}, 0); err != nil {
		return nil, err
	}
	failed, err := v.Service.List(ctx, operator.ListRequest{Statuses: []core.Status{core.StatusFailed, core.StatusStopped, core.StatusUnknown}, Limit: pageSize})
	if err != nil {
		return nil, err
	}
	needs := slices.DeleteFunc(failed.Executions, func(e operator.Execution) bool { return !isOpen(&e) })
	view.Failed = v.executionLines(needs)
	const most = 15
	ended, err := v.Service.List(ctx, operator.ListRequest{Statuses: []core.Status{core.StatusCompleted, core.StatusFailed, core.StatusStopped, core.StatusUnknown, core.StatusAbandoned}, Limit: most})
	if err != nil {
		return nil, err
	}
	view.Ended = v.executionLines(ended.Executions)
	return &page{Title: nowTitle(&view), Heading: nowHeading(&view), Body: view}, nil
}

// isOpen: an operator may still do something about it.
func isOpen(e *operator.Execution) bool {
	return slices.ContainsFunc(e.Actions, func(a operator.Action) bool {
		return slices.Contains([]refusal.ActionKind{refusal.ActRestart, refusal.ActRedrive, refusal.ActAbandon, refusal.ActRecover}, a.Kind)
	})
}

func nowTitle(view *nowView) string {
	return "Now: " + humanize.Count(len(view.Failed)) + " failed, " + humanize.Count(len(view.Running)) + " running"
}

func nowHeading(view *nowView) string {
	switch n := len(view.Failed); {
	case n == 1:
		return "1 execution needs you"
	case n > 1:
		return humanize.Count(n) + " executions need you"
	case len(view.Running) > 0:
		return "Nothing needs you; " + humanize.Plural(len(view.Running), "step") + " running"
	}
	return "Nothing needs you, and nothing runs"
}
