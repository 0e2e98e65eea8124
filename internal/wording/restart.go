package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
)

func restartText(e *operator.Explanation) []string {
	switch {
	case e.Refused != "" && e.Restart == nil:
		return append([]string{"It cannot be restarted: " + refusedText(e) + "."}, DiffLines(e.Diff)...)
	case e.Refused == refusal.Exclusive:
		return []string{"A restart is refused now: " + refusedText(e) + ".", "Then it " + planSentence(e.Restart) + "."}
	case e.Refused != "":
		return []string{"A restart would fail: " + refusedText(e) + "."}
	}
	var text []string
	takes := "A restart"
	if e.Status.IsRunning() {
		text = append(text, "The next run or restart takes it over.")
		takes = "That attempt"
	}
	switch {
	case e.RedriveOf != 0:
		return append(text, fmt.Sprintf("It redrives items that execution %d skipped; another redrive runs the remaining ones.", e.RedriveOf))
	case e.Restart == nil:
		return append(text, "This program no longer understands the stored job file, so the plan of a restart is not known: it passes the complete steps.")
	}
	text = append(text, takes+" "+planSentence(e.Restart)+".")
	return append(append(text, sameItem(e)...), fileText(e)...)
}

// sameItem warns of an error that depends on nothing but the input.
func sameItem(e *operator.Explanation) []string {
	for _, a := range e.Actions {
		if a.Kind == refusal.ActCure && a.Name != "" {
			return []string{"Without a correction of " + a.Name + " it fails there again."}
		}
	}
	return nil
}

func fileText(e *operator.Explanation) []string {
	file := "The job file " + cmp.Or(e.ChangedFile, e.File)
	switch {
	case e.FileChange == operator.FileGone:
		return []string{file + " no longer exists; the plan is for the file as it was."}
	case e.FileChange == "":
		return nil
	case e.FileError != "":
		return []string{file + " has changed since, and cannot be run: " + strings.TrimRight(humanize.OneLine(e.FileError), ".") + ".", "The plan is for the file as it was."}
	case e.File == "":
		file = "The job"
	}
	text := []string{file + " has changed since; the plan is for the file as it is now."}
	for _, change := range e.Changes {
		text = append(text, strings.ToUpper(change.String()[:1])+change.String()[1:]+".")
	}
	return text
}

func refusedText(e *operator.Explanation) string {
	switch e.Refused {
	case refusal.NotNewest:
		return fmt.Sprintf("execution %d followed it in the same instance, and is %s", e.Newest, e.NewestStatus)
	case refusal.Running:
		return "it is running"
	case refusal.Complete:
		return "it is complete"
	case refusal.Exclusive:
		return fmt.Sprintf("execution %d runs, and the job must not run in parallel with it", e.RefusedBy)
	case refusal.Abandoned:
		return "it was abandoned"
	case refusal.Unknown:
		return "it is not known whether its last transaction committed: check what it wrote, then abandon it"
	case refusal.NotRestartable:
		return "its job file says restartable: false"
	case refusal.Changed:
		var refused []string
		why := "its times would be parsed differently now: "
		for _, change := range e.Changes {
			if !change.Refused {
				continue
			}
			if refused = append(refused, change.String()); !change.FormerTimes {
				why = "changes of its job file affect committed work: "
			}
		}
		return why + strings.Join(refused, "; ")
	case refusal.IllegalState:
		if e.Unreadable != "" {
			return humanize.OneLine(e.Unreadable)
		}
	case refusal.StartLimit:
		if l := e.Restart.Limit; l != nil {
			return fmt.Sprintf("step %s was attempted %s, and its start_limit is %d", l.Step, timesText(l.Attempts), l.Limit)
		}
	default:
	}
	return string(e.Refused)
}

func timesText(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func planSentence(p *operator.RestartPlan) string {
	var certain, later []operator.PlanEntry
	for _, e := range p.Entries {
		if e.Certainty == operator.CertainAfter {
			later = append(later, e)
		} else {
			certain = append(certain, e)
		}
	}
	clauses := planClauses(certain)
	if len(later) > 0 {
		clauses = append(clauses, "then, "+laterSentence(p.Entries, later))
	}
	if p.IsDone() {
		if p.Gate != "" {
			clauses = append(clauses, "checks the job's expectation again ("+p.Gate+")")
		} else {
			clauses = append(clauses, "has no step left to run, and ends as the flow says")
		}
	}
	var last []string
	for _, e := range p.Entries {
		if e.Action == operator.PlanFinally {
			last = append(last, entryName(e))
		}
	}
	if len(last) > 0 {
		clauses = append(clauses, "runs "+humanize.And(last)+" at the end")
	}
	return humanize.And(clauses)
}

func planClauses(entries []operator.PlanEntry) []string {
	names := map[operator.PlanAct][]string{}
	var acts []operator.PlanAct // in the order of the plan
	for _, e := range entries {
		name := entryName(e)
		if e.Action == operator.PlanResume {
			name = resumeClause(e) + repeatText(e)
		}
		if !slices.Contains(acts, e.Action) {
			acts = append(acts, e.Action)
		}
		names[e.Action] = append(names[e.Action], name)
	}
	formats := map[operator.PlanAct]string{
		operator.PlanPass: "passes %s", operator.PlanRepeat: "runs %s again although it completed", operator.PlanRun: "runs %s",
		operator.PlanSkip: "does not run %s, whose condition does not hold", operator.PlanAsk: "asks %s which path to take",
		operator.PlanStop: "stops at %s", operator.PlanLimit: "fails at %s, whose start_limit is used up",
	}
	var clauses []string
	for _, act := range acts {
		if act == operator.PlanResume {
			clauses = append(clauses, names[act]...)
		} else if format := formats[act]; format != "" {
			clauses = append(clauses, fmt.Sprintf(format, humanize.And(names[act])))
		}
	}
	return clauses
}

func entryName(e operator.PlanEntry) string {
	name := e.Step
	if name == "" {
		name = e.Element
	}
	if e.If != "" {
		name += " (if " + e.If + ")"
	}
	if e.OnWorkers {
		name += " (on workers)"
	}
	return name + repeatText(e)
}

func repeatText(e operator.PlanEntry) string {
	if e.MayRepeat {
		return " (may repeat)"
	}
	return ""
}

func resumeClause(e operator.PlanEntry) string {
	switch {
	case e.Partitions != nil:
		text := fmt.Sprintf("resumes %s, of which %s complete", e.Step, partitionCount(e.Partitions.Completed))
		var again []string
		for _, part := range e.Partitions.Again {
			name := part.Name
			if part.From != "" {
				name += " (after " + part.From + ")"
			}
			again = append(again, name)
		}
		if len(again) == 0 {
			return text
		}
		verb := "run"
		if len(again) == 1 {
			verb = "runs"
		}
		return text + " and " + humanize.And(humanize.Few(again, e.Partitions.Omitted)) + " " + verb + " again"
	case e.From != "":
		return "resumes " + e.Step + " after " + e.From
	}
	return "runs " + e.Step + " again from its start"
}

func partitionCount(n int) string {
	if n == 1 {
		return "1 partition is"
	}
	return humanize.Count(n) + " partitions are"
}
