package jobfile

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkFlow checks the targets of all steps and makes their edges explicit.
func (l *loader) checkFlow() {
	for i, s := range l.file.steps {
		following := core.Target{Kind: core.TargetEnd}
		if i+1 < len(l.file.steps) {
			following = core.Target{Kind: core.TargetElement, Name: l.file.steps[i+1].name}
		}
		s.edges = l.edges(s, following)
	}
}

// edges turns `next` into transitions (rule F1). What the file leaves open is
// said: a step that completed goes on to the following element, whatever its exit
// code; any other outcome ends the job.
func (l *loader) edges(s *stepDef, following core.Target) []core.Transition {
	var edges []core.Transition
	if next := &s.model.Next; next.node != nil {
		for _, c := range next.cases {
			target, ok := l.target(s, c)
			switch {
			case !ok:
			case c.pattern == "":
				following = target
			default:
				edges = append(edges, core.Transition{Pattern: c.pattern, Target: target})
			}
		}
		l.checkEnds(next)
	}
	named := slices.Clone(edges)
	if !slices.ContainsFunc(named, func(t core.Transition) bool { return t.Pattern == "*" }) {
		edges = append(edges, core.Transition{Pattern: "*", Target: following})
		for _, code := range []string{core.ExitFailed, core.ExitUnknown} {
			if _, ok := core.Next(named, code); !ok {
				edges = append(edges, core.Transition{Pattern: code, Target: core.Target{Kind: core.TargetFail}})
			}
		}
	}
	return edges
}

// target resolves the target of one case.
func (l *loader) target(s *stepDef, c nextCase) (core.Target, bool) {
	t := c.target
	switch t.name {
	case "end":
		return core.Target{Kind: core.TargetEnd, Exit: t.exit}, true
	case "fail":
		return core.Target{Kind: core.TargetFail, Exit: t.exit}, true
	case "stop":
		if t.restart != "" && !slices.Contains(l.stepNames, t.restart) {
			l.problems.Add(t.restartAt, fmt.Sprintf("restart: there is no step %s", t.restart), strict.Suggest(t.restart, l.stepNames))
			return core.Target{}, false
		}
		return core.Target{Kind: core.TargetStop, Restart: t.restart, Message: t.message}, true
	}
	if !slices.Contains(l.stepNames, t.name) {
		l.problems.Add(t.at, fmt.Sprintf("next: there is no step %s", t.name), strict.Suggest(t.name, append(slices.Clone(l.stepNames), reserved()...)))
		return core.Target{}, false
	}
	if t.name == s.name {
		l.problems.Add(t.at, fmt.Sprintf("next: step %s leads to itself", s.name), "")
		return core.Target{}, false
	}
	return core.Target{Kind: core.TargetElement, Name: t.name}, true
}

// checkEnds refuses an `end` that a failure reaches through a pattern that does
// not name it: the job would be COMPLETED.
func (l *loader) checkEnds(next *nextModel) {
	var all []core.Transition
	for _, c := range next.cases {
		if c.pattern != "" {
			all = append(all, core.Transition{Pattern: c.pattern, Target: core.Target{Name: c.pattern}})
		}
	}
	chosen, ok := core.Next(all, core.ExitFailed)
	if !ok || chosen.Name == core.ExitFailed {
		return
	}
	for _, c := range next.cases {
		if c.pattern == chosen.Name && c.target.name == "end" {
			l.problems.Add(c.at, fmt.Sprintf("the pattern %q takes a failed step to end, and the job would be COMPLETED", c.pattern),
				"name it if that is meant: {FAILED: end}; or say where a failure goes: {FAILED: fail}")
		}
	}
}
