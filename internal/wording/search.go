package wording

import (
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// SearchedTo says how far a search came.
func SearchedTo(to operator.SearchedTo) string {
	text := "searched up to execution " + ID(to.Execution)
	if !to.Time.IsZero() {
		text += " (" + humanize.Time(to.Time) + ")"
	}
	return text
}

// Counted says how many executions a search has.
func Counted(c operator.ExecutionCount) string {
	switch {
	case c.More:
		return "at least " + humanize.Count(c.Count) + " executions"
	case c.Count == 1:
		return "1 execution"
	}
	return humanize.Count(c.Count) + " executions"
}
