package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const maxFailedPartitions = 20

func (env *environment) partitionText(step operator.StepView, current core.JobExecutionID, all bool) string {
	var b strings.Builder
	ps := step.Partitions
	fmt.Fprintf(&b, "%s: %s: %s\n", step.Step, wording.Parts(ps, ps.Total), wording.StatusCounts(ps.Statuses))
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
			fmt.Fprintf(&b, "%s: worker %d on %s, %s\n", s.Step, w.PID, w.Host, wording.WorkerLease(w, env.now()))
		}
		if s.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.Step, humanize.OneLine(s.Error))
		}
	}
	if all && ps.Omitted > 0 {
		fmt.Fprintf(&b, "and %s more:  %s\n", humanize.Count(ps.Omitted), env.command("parts", wording.ID(current), "--step", strconv.FormatInt(int64(step.ID), 10)))
	}
	if left > 0 {
		fmt.Fprintf(&b, "and %d more that failed or are at work:  %s\n", left, env.command("show", wording.ID(current), "--partitions"))
	}
	return b.String()
}
