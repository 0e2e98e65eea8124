package cli

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// maxFailedPartitions is how many failed partitions of a step are listed unasked.
const maxFailedPartitions = 20

// partitionText is the partitions of a step in one line, then those that failed, or
// all of them.
func (env *environment) partitionText(step operator.StepView, current core.JobExecutionID, all bool) string {
	var b strings.Builder
	ps := step.Partitions
	fmt.Fprintf(&b, "%s: %s: %s\n", step.Step, plural(ps.Total, "partition"), statusCounts(ps.Statuses))
	shown, left := ps.List, 0
	if !all {
		left = max(0, len(shown)-maxFailedPartitions)
		shown = shown[:len(shown)-left]
	}
	if len(shown) > 0 {
		b.WriteString(stepTable(shown, current))
	}
	for _, s := range shown {
		if s.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.Step, oneLine(s.Error))
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "and %d more that failed:  %s\n", left, env.command("show", idText(current), "--partitions"))
	}
	return b.String()
}
