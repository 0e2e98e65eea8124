package wording

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// DryHeadline describes a step's dry run.
func DryHeadline(s *operator.DryStep) string {
	switch {
	case s.Action == operator.PlanStop:
		return "Stop at " + s.Element
	case s.Action == operator.PlanSkip && s.Step == "":
		return "Nothing of " + s.Element + ": its condition does not hold"
	case s.Action == operator.PlanAsk && s.Kind == "decision":
		return "Decision " + s.Element + ": asked when the flow reaches it"
	case s.Action == operator.PlanAsk:
		return "Condition of " + s.Element + ": asked when the flow reaches it"
	}
	text := fmt.Sprintf("Step %s (%s)", s.Step, s.Kind)
	if s.OnWorkers {
		text = fmt.Sprintf("Step %s (%s, on workers)", s.Step, s.Kind)
	}
	switch {
	case s.Action == operator.PlanSkip:
		text += ": not run, its condition does not hold"
	case s.Action == operator.PlanPass:
		return text + ": " + passed(s.PlanEntry)
	case s.Action == operator.PlanLimit:
		return text + ": refused, its start_limit is used up"
	case s.Kind == "tasks" && s.Action == operator.PlanResume:
		text += ": would retry the tasks that did not succeed, or submit them if that was not done"
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
		text += ", at the end"
	case operator.PlanResume:
		text += ", since its last attempt did not complete"
	default:
	}
	return text
}

func passed(e operator.PlanEntry) string {
	switch {
	case e.PassedBy == 0:
		return "passed"
	case e.Abandoned:
		return "passed, execution " + ID(e.PassedBy) + " abandoned it"
	}
	return "passed, execution " + ID(e.PassedBy) + " completed it"
}

// DryNotes returns the notes below the headline of a step's dry run, in two parts: before its items, and after them.
func DryNotes(s *operator.DryStep, all []operator.PlanEntry, database func(name string) string) (before, after []string) {
	note := func(format string, args ...any) { before = append(before, fmt.Sprintf(format, args...)) }
	if text := Certainty(s.PlanEntry, all); text != "" {
		note("%s", text)
	}
	if len(s.Partitions) > 0 {
		first := ""
		if s.Sampled && len(s.Partitions) > 1 {
			first = "; the items are of the first one"
		}
		note("%s: %s%s", humanize.Plural(len(s.Partitions), "partition"), humanize.And(humanize.Few(s.Partitions, 0)), first)
	}
	if s.Tasks > 0 {
		note("%s for the handler %s", humanize.Plural(s.Tasks, "task"), s.Component)
	}
	for _, w := range s.Warnings {
		note("warning: %s", w)
	}
	for _, w := range s.Writers {
		note("writes to %s", dryEnd(w, database))
	}
	switch {
	case s.Waits != "":
		note("not sampled: %s", humanize.OneLine(s.Waits))
	case s.Error != "":
		note("would fail: %s", humanize.OneLine(s.Error))
	}
	if !s.Sampled {
		return before, nil
	}
	switch {
	case s.Resumed:
		note("the items are the first after its last commit")
	case s.Action == operator.PlanResume && len(s.Items) > 0:
		note("the items are the first of its input, even if the step resumes after them")
	}
	return before, []string{DrySum(s)}
}

func dryEnd(e operator.DryEnd, database func(name string) string) string {
	text := strings.TrimSpace(e.Component + " " + e.Target)
	if len(e.Columns) > 0 {
		text += " (" + humanize.Join(e.Columns) + ")"
	}
	if e.Database != "" {
		text += " in " + database(e.Database)
	}
	return text
}

// DryEntries are the entries of the plan of a dry run.
func DryEntries(plan *operator.DryRun) []operator.PlanEntry {
	entries := make([]operator.PlanEntry, len(plan.Steps))
	for i, s := range plan.Steps {
		entries[i] = s.PlanEntry
	}
	return entries
}

// DryRows returns an item as read, then each change.
func DryRows(i operator.DryItem) [][]string {
	read := string(i.Read)
	if i.Read == nil {
		read = humanize.OneLine(i.Error)
	}
	at := i
	if at.Path != "" {
		at.Path = filepath.Base(at.Path) // the whole path is above, with the reader
	}
	rows := [][]string{{ItemPlace(at), i.Outcome, humanize.Clip(read, maxItem)}}
	for _, s := range i.Changes() {
		rows = append(rows, []string{"", s.Processor, humanize.Clip(string(s.Item), maxItem)})
	}
	if i.Error != "" && i.Read != nil {
		why := i.Phase
		if i.Class != "" {
			why += " (" + i.Class + ")"
		}
		text := humanize.OneLine(i.Error)
		if i.Outcome == operator.OutcomeUnknown {
			text = "the processor writes to the database, which a dry run forbids: " + text
		}
		rows = append(rows, []string{"", why, humanize.Clip(text, maxItem)})
	}
	return rows
}

// JSON has all of it.
const maxItem = 300

// DrySum counts the items of a sampled step by their outcome.
func DrySum(s *operator.DryStep) string {
	if len(s.Items) == 0 {
		return "no items to read"
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

// FirstFailure returns the first item that would fail the step, with its error.
func FirstFailure(s *operator.DryStep) string {
	for _, item := range s.Items {
		if item.Outcome == operator.OutcomeFailed {
			return ItemPlace(item) + ": " + humanize.OneLine(item.Error)
		}
	}
	return "an item"
}

// ItemPlace returns where an item was read.
func ItemPlace(i operator.DryItem) string {
	if at := (item.Meta{Path: i.Path, Line: i.Line, Index: i.Index, Row: i.Row}).String(); at != "" {
		return at
	}
	return fmt.Sprintf("item %d", i.Number)
}
