package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const maxFailedPartitions = 20

// partitionText summarizes the partitions of a step in one line, then lists those that failed or
// that workers have, or all of them.
func (env *environment) partitionText(step operator.StepView, current core.JobExecutionID, all bool) string {
	var b strings.Builder
	ps := step.Partitions
	fmt.Fprintf(&b, "%s: %s: %s\n", step.Step, partsWord(ps, ps.Total), statusCounts(ps.Statuses))
	shown, left := ps.List, 0
	if !all {
		shown = shown[:min(len(shown), maxFailedPartitions)]
		left = len(ps.List) + ps.Omitted - len(shown)
	}
	if len(shown) > 0 {
		b.WriteString(stepTable(shown, current))
	}
	for _, s := range shown {
		if w := s.Worker; w != nil {
			fmt.Fprintf(&b, "%s: worker %d on %s, %s\n", s.Step, w.PID, w.Host, workerLeaseText(w, env.now()))
		}
		if s.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.Step, oneLine(s.Error))
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "and %d more that failed or are at work:  %s\n", left, env.command("show", idText(current), "--partitions"))
	}
	return b.String()
}

// partsWord is "n partitions", or "n branches" for a split.
func partsWord(ps *operator.PartitionsView, n int) string {
	switch {
	case !ps.Branches:
		return plural(n, "partition")
	case n == 1:
		return "1 branch"
	}
	return count(int64(n)) + " branches"
}

// workerLeaseText describes how long the lease of a part lasts; for an expired one, why no other
// worker has the part.
func workerLeaseText(w *operator.Owner, now time.Time) string {
	over := now.Sub(w.LeaseUntil)
	if over <= 0 && !w.Dead {
		return "lease until " + timeText(w.LeaseUntil)
	}
	text := "which is gone"
	if !w.Dead {
		text = "lease ended " + durationText(over) + " ago"
	}
	return text + "; no worker has looked for parts since"
}
