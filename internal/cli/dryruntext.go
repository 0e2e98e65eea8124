package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
)

// dryRunText formats a dry run for people: a paragraph for each step.
func (c dryRunCommand) dryRunText(plan *operator.DryRun) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Dry run of job %s", plan.JobName)
	if words := parameterText(plan.Params.All()); words != "" {
		b.WriteString(" (" + clip(words, 200) + ")")
	}
	b.WriteString(": nothing is written.\n")
	if plan.Refused != nil {
		b.WriteString("A run is refused now: " + oneLine(plan.Refused.Error()) + ".\n")
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

// maxItem is the number of characters of an item in a line; JSON has all of it.
const maxItem = 300

func (c dryRunCommand) dryStepText(s *operator.DryStep, all []operator.PlanEntry) string {
	var b strings.Builder
	b.WriteString(dryHeadline(s) + "\n")
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if text := certaintyText(s.PlanEntry, all); text != "" {
		line("%s", text)
	}
	if len(s.Partitions) > 0 {
		first := ""
		if s.Sampled && len(s.Partitions) > 1 {
			first = "; the items are of the first one"
		}
		line("%s: %s%s", plural(len(s.Partitions), "partition"), andWords(fewNames(s.Partitions, 0)), first)
	}
	if s.Tasks > 0 {
		line("%s for the handler %s", plural(s.Tasks, "task"), s.Component)
	}
	for _, w := range s.Warnings {
		line("warning: %s", w)
	}
	for _, w := range s.Writers {
		line("writes to %s", c.dryEndText(w))
	}
	switch {
	case s.Waits != "":
		line("not sampled: %s", oneLine(s.Waits))
	case s.Error != "":
		line("would fail: %s", oneLine(s.Error))
	}
	if !s.Sampled {
		return b.String()
	}
	if s.Action == operator.PlanResume {
		line("the items are the first of its input, also where it continues behind them")
	}
	var rows [][]string
	for _, item := range s.Items {
		rows = append(rows, dryRows(item)...)
	}
	if len(rows) > 0 {
		b.WriteString(indent(renderTable([]column{{title: "item"}, {title: "outcome"}, {title: "content"}}, rows)))
	}
	line("%s", drySum(s))
	return b.String()
}

func dryHeadline(s *operator.DryStep) string {
	switch {
	case s.Action == operator.PlanStop:
		return "Stop at " + s.Element
	case s.Action == operator.PlanSkip && s.Step == "":
		return "Nothing of " + s.Element + ": its condition does not hold"
	case s.Action == operator.PlanAsk && s.Kind == "decision":
		return "Decision " + s.Element + ": asked when the flow comes to it"
	case s.Action == operator.PlanAsk:
		return "Condition of " + s.Element + ": asked when the flow comes to it"
	}
	text := fmt.Sprintf("Step %s (%s)", s.Step, s.Kind)
	if s.OnWorkers {
		text = fmt.Sprintf("Step %s (%s, on workers)", s.Step, s.Kind)
	}
	switch {
	case s.Action == operator.PlanSkip:
		text += ": not run, its condition does not hold"
	case s.Action == operator.PlanPass:
		return text + ": passed, an earlier attempt completed it or gave it up"
	case s.Action == operator.PlanLimit:
		return text + ": refused, its start_limit is used up"
	case s.Kind == "tasks" && s.Action == operator.PlanResume:
		text += ": would have tasks attempted again that did not succeed, or submit them where that was not done"
	case s.Kind == "tasks" && s.Reader != nil:
		text += ": would submit a task for each item of " + strings.TrimSpace(s.Reader.Component+" "+s.Reader.Target)
	case s.Kind == "tasks":
		text += ": would submit tasks"
	case s.Reader != nil:
		text += ": reads " + strings.TrimSpace(s.Reader.Component+" "+s.Reader.Target)
		if len(s.Processors) > 0 {
			text += ", then " + strings.Join(s.Processors, ", ")
		}
	case s.Component != "":
		text += ": would run " + s.Component
	default:
		text += ": would run"
	}
	switch s.Action {
	case operator.PlanFinally:
		text += ", in the end"
	case operator.PlanResume:
		text += ", since its last attempt did not complete"
	default:
	}
	return text
}

func (c dryRunCommand) dryEndText(e operator.DryEnd) string {
	text := strings.TrimSpace(e.Component + " " + e.Target)
	if len(e.Columns) > 0 {
		text += " (" + joinWords(e.Columns) + ")"
	}
	if e.Database != "" {
		text += " in " + c.env.databaseText(e.Database)
	}
	return text
}

// dryRows returns the lines of an item: as it was read, then each change.
func dryRows(i operator.DryItem) [][]string {
	read := string(i.Read)
	if i.Read == nil {
		read = oneLine(i.Error)
	}
	at := i
	if at.Path != "" {
		at.Path = filepath.Base(at.Path) // the whole path is above, with the reader
	}
	rows := [][]string{{itemPlace(at), i.Outcome, clip(read, maxItem)}}
	for _, s := range i.Changes() {
		rows = append(rows, []string{"", s.Processor, clip(string(s.Item), maxItem)})
	}
	if i.Error != "" && i.Read != nil {
		why := i.Phase
		if i.Class != "" {
			why += " (" + i.Class + ")"
		}
		text := oneLine(i.Error)
		if i.Outcome == operator.OutcomeUnknown {
			text = "the processor writes to the database, which a dry run does not let it: " + text
		}
		rows = append(rows, []string{"", why, clip(text, maxItem)})
	}
	return rows
}

func drySum(s *operator.DryStep) string {
	if len(s.Items) == 0 {
		return "there is nothing to read"
	}
	text := fmt.Sprintf("%d read: %d written", s.Read, s.Written)
	for _, part := range []struct {
		n    int
		word string
	}{{s.Filtered, "filtered"}, {s.Skipped, "skipped"}, {s.Failed, "failed"}, {s.Unknown, "unknown"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	return text
}
