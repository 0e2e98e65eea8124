package jobfile

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkPatterns refuses patterns that match no possible exit code of the element.
func (l *loader) checkPatterns(list *listDef) {
	list.walk(func(e *elementDef) {
		codes, known := e.exitCodes()
		if !known {
			return
		}
		for _, c := range e.keys.Next.cases {
			matches := func(code string) bool { return model.MatchPattern(c.pattern, code) }
			if c.pattern != "" && !slices.ContainsFunc(codes, matches) {
				l.problems.Add(c.at, fmt.Sprintf("%s %s never has the exit code %s", e.kind.word(), e.name, c.pattern), yamlfile.Suggest(c.pattern, codes))
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
func (e *elementDef) exitCodes() (codes []string, known bool) {
	switch e.kind {
	case stepKind:
		uses := e.step.components()
		for _, u := range append(uses, e.step.listeners...) {
			if u == nil || !u.component.StandardExits {
				return nil, false
			}
		}
		return standardExits(), len(uses) > 0
	case splitKind, flowKind, atomicKind:
		codes = standardExits()
		for _, list := range e.lists {
			for _, inner := range list.elements {
				below, known := inner.exitCodes()
				if !known && (inner.kind != decideKind || inner.decider != nil) {
					return nil, false
				}
				codes = append(codes, below...)
				for _, t := range inner.edges {
					if t.Target.Exit != "" {
						codes = append(codes, t.Target.Exit)
					}
				}
			}
		}
		slices.Sort(codes)
		return slices.Compact(codes), true
	case decideKind, jobKind:
	}
	return nil, false
}
