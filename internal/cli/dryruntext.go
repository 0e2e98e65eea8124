package cli

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

func (c dryRunCommand) dryRunText(plan *operator.DryRun) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Dry run of job %s", plan.JobName)
	if words := wording.Parameters(operator.Given(plan.Params.Parameters)); words != "" {
		b.WriteString(" (" + humanize.Clip(words, 200) + ")")
	}
	b.WriteString(": nothing is written.\n")
	if plan.Refused != nil {
		b.WriteString("A run is refused now: " + humanize.OneLine(plan.Refused.Error()) + ".\n")
	}
	for _, change := range plan.Changes {
		b.WriteString("Changed since: " + change.String() + ".\n")
	}
	entries := wording.DryEntries(plan)
	for _, s := range plan.Steps {
		b.WriteString("\n" + c.dryStepText(s, entries))
	}
	return b.String()
}

func (c dryRunCommand) dryStepText(s *operator.DryStep, all []operator.PlanEntry) string {
	var b strings.Builder
	b.WriteString(wording.DryHeadline(s) + "\n")
	before, after := wording.DryNotes(s, all, c.env.databaseText)
	for _, note := range before {
		b.WriteString("  " + note + "\n")
	}
	var rows [][]string
	for _, item := range s.Items {
		rows = append(rows, wording.DryRows(item)...)
	}
	if s.Sampled && len(rows) > 0 {
		b.WriteString(indent(renderTable([]column{{title: "item"}, {title: "outcome"}, {title: "content"}}, rows)))
	}
	for _, note := range after {
		b.WriteString("  " + note + "\n")
	}
	return b.String()
}
