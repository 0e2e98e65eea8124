package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// decisions returns, for each element, the newest answer of a decision, or condition that did not
// hold, in an execution and its earlier attempts.
func (s *Service) decisions(ctx context.Context, e *core.JobExecution) ([]DecisionView, error) {
	rows, err := s.config.Repository.Visits(ctx, e.InstanceID, e.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the journal of execution %d: %w", e.ID, err)
	}
	rows = slices.DeleteFunc(rows, func(r ports.JournalRow) bool {
		return r.Execution > e.ID || r.Kind != ports.VisitDecision && r.Kind != ports.VisitNoop
	})
	slices.SortFunc(rows, func(a, b ports.JournalRow) int {
		return cmp.Or(cmp.Compare(b.Execution, a.Execution), strings.Compare(b.Flow, a.Flow), cmp.Compare(b.Ordinal, a.Ordinal))
	})
	seen := map[string]bool{}
	var list []DecisionView
	for _, r := range rows {
		if seen[r.Element] {
			continue
		}
		seen[r.Element] = true
		view := DecisionView{Kind: "decide", Element: r.Element, Verdict: r.Verdict}
		if r.Kind == ports.VisitNoop {
			view.Kind, view.Verdict = "when", "false"
		}
		list = append(list, view)
	}
	slices.Reverse(list)
	return list, nil
}
