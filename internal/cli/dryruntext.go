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
	if words := wording.Parameters(plan.Params.All()); words != "" {
		b.WriteString(" (" + humanize.Clip(words, 200) + ")")
	}
	b.WriteString(": nothing is written.\n")
	if plan.Refused != nil {
		b.WriteString("A run is refused now: " + humanize.OneLine(plan.Refused.Error()) + ".\n")
	}
	for _, change := range plan.Changes {
		b.WriteString("Changed since: " + change.String() + ".\n")
	}
	entries := make([]operator.PlanEntry, len(plan.Steps))
	for i, s := range plan.Steps {
		entries[i] = s.PlanEntry
	}
	for _, s := range plan.Steps {
		b.WriteString("\n" + c.dryStepText(s, entries))
	}
	return b.String()
}

func (c dryRunCommand) dryStepText(s *operator.DryStep, all []operator.PlanEntry) string {
	var b strings.Builder
	b.WriteString(wording.DryHeadline(s) + "\n")
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if text := wording.Certainty(s.PlanEntry, all); text != "" {
		line("%s", text)
	}
	if len(s.Partitions) > 0 {
		first := ""
		if s.Sampled && len(s.Partitions) > 1 {
			first = "; the items are of the first one"
		}
		line("%s: %s%s", humanize.Plural(len(s.Partitions), "partition"), humanize.And(humanize.Few(s.Partitions, 0)), first)
	}
	if s.Tasks > 0 {
		line("%s for the handler %s", humanize.Plural(s.Tasks, "task"), s.Component)
	}
	for _, w := range s.Warnings {
		line("warning: %s", w)
	}
	for _, w := range s.Writers {
		line("writes to %s", c.dryEndText(w))
	}
	switch {
	case s.Waits != "":
		line("not sampled: %s", humanize.OneLine(s.Waits))
	case s.Error != "":
		line("would fail: %s", humanize.OneLine(s.Error))
	}
	if !s.Sampled {
		return b.String()
	}
	if s.Action == operator.PlanResume {
		line("the items are the first of its input, even if the step resumes after them")
	}
	var rows [][]string
	for _, item := range s.Items {
		rows = append(rows, wording.DryRows(item)...)
	}
	if len(rows) > 0 {
		b.WriteString(indent(renderTable([]column{{title: "item"}, {title: "outcome"}, {title: "content"}}, rows)))
	}
	line("%s", wording.DrySum(s))
	return b.String()
}

func (c dryRunCommand) dryEndText(e operator.DryEnd) string {
	text := strings.TrimSpace(e.Component + " " + e.Target)
	if len(e.Columns) > 0 {
		text += " (" + humanize.Join(e.Columns) + ")"
	}
	if e.Database != "" {
		text += " in " + c.env.databaseText(e.Database)
	}
	return text
}
