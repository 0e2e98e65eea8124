package check

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkPatterns refuses patterns that match no possible exit code of the element.
func (l *graph) checkPatterns(list *model.List) {
	list.Walk(func(e *model.Element) {
		codes, known := exitCodes(e)
		if !known {
			return
		}
		for _, c := range e.Keys.Next.Cases {
			matches := func(code string) bool { return core.MatchPattern(c.Pattern, code) }
			if c.Pattern != "" && !slices.ContainsFunc(codes, matches) {
				l.problems.Add(c.At, fmt.Sprintf("%s %s never has the exit code %s", e.Kind.Word(), e.Name, c.Pattern), yamlfile.Suggest(c.Pattern, codes))
			}
		}
	})
}

// standardExits are the exit codes of a step without component-specific ones.
func standardExits() []string {
	return []string{core.ExitCompleted, core.ExitFailed, core.ExitStopped, core.ExitNoop, core.ExitExpectFailed, core.ExitUnknown}
}

// exitCodes returns the possible exit codes of the element; known is false if components or other files
// decide.
func exitCodes(e *model.Element) (codes []string, known bool) {
	switch e.Kind {
	case language.StepKind:
		uses := e.Step.Components()
		for _, u := range append(uses, e.Step.Listeners...) {
			if u == nil || !u.Component.StandardExits {
				return nil, false
			}
		}
		return standardExits(), len(uses) > 0
	case language.SplitKind, language.FlowKind, language.AtomicKind:
		codes = standardExits()
		for _, list := range e.Lists {
			for _, inner := range list.Elements {
				below, known := exitCodes(inner)
				if !known && (inner.Kind != language.DecideKind || inner.Decider != nil) {
					return nil, false
				}
				codes = append(codes, below...)
				for _, t := range inner.Edges {
					if t.Target.Exit != "" {
						codes = append(codes, t.Target.Exit)
					}
				}
			}
		}
		slices.Sort(codes)
		return slices.Compact(codes), true
	case language.DecideKind, language.JobKind:
	}
	return nil, false
}
