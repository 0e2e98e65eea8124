package cli

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// planRestart says what a restart does, or why there is none, and the ways on.
func (p *program) planRestart(e *explanation, f *past) {
	way := func(to string, words ...string) {
		e.Commands = append(e.Commands, commandLine{to, p.command(words...)})
	}
	id := idText(f.exec.ID)
	switch status := f.exec.Status; {
	case f.newest.ID != f.exec.ID:
		e.Refused = fmt.Sprintf("execution %d followed it in the same instance, and is %s", f.newest.ID, f.newest.Status)
		way("explain that one", "explain", idText(f.newest.ID))
	case status.IsRunning() && e.Lease == leaseHeld:
		e.Refused = "it is running"
		way("watch it", "top", "--job", f.exec.JobName)
		if status != core.StatusStopping && !f.exec.StopRequested {
			way("stop it", "stop", id)
		}
	case status == core.StatusCompleted:
		e.Refused = "it is complete"
		p.waysAnew(e, f)
	case status == core.StatusAbandoned:
		e.Refused = "it was given up"
		p.waysAnew(e, f)
	case status == core.StatusUnknown:
		e.Refused = "nobody can say whether its last transaction is committed: look at what it wrote, then give it up"
		way("give it up", "abandon", id)
		p.waysAnew(e, f)
	default:
		p.waysOn(e, f)
	}
	if len(f.skips) == 0 {
		return
	}
	way("see what was skipped", "skips", "list", id)
	if f.exec.Status.IsRunning() || f.exec.RedriveOf != 0 {
		return
	}
	items, reads := left(f.skips)
	switch {
	case items > 0:
		way("redrive it", "skips", "redrive", id)
	case reads > 0: // what could not be read is to be given first
		way("mend it", "skips", "export", id, "--out", "FILE")
	}
}

// left counts what was not redriven: items, and reads that failed.
func left(counts []core.SkipCount) (items, reads int64) {
	for _, c := range counts {
		if c.Phase == core.PhaseRead {
			reads += c.Left
		} else {
			items += c.Left
		}
	}
	return items, reads
}

// waysOn are those of an execution that failed, stopped, or lost its process.
func (p *program) waysOn(e *explanation, f *past) {
	way := func(to, command string) { e.Commands = append(e.Commands, commandLine{to, command}) }
	id := idText(f.exec.ID)
	if f.exec.Status.IsRunning() {
		way("end it", p.command("recover"))
	}
	switch {
	case f.exec.RedriveOf != 0: // it runs no flow, but what is left of the skipped items
	case f.job == nil:
	case !f.job.Restartable:
		e.Refused = "its job file says restartable: false"
		p.waysAnew(e, f)
		return
	default:
		w := &planner{job: f.job, history: f.history, context: f.exec.Context, reader: f.reads}
		if w.context == nil {
			w.context = core.NewExecutionContext()
		}
		plan := w.restart()
		e.Restart, e.Refused = &plan, plan.Limit
	}
	if e.Refused != "" {
		p.waysAnew(e, f)
		return
	}
	if f.changed != "" {
		way("see what changed", p.command("show", id, "--definition")+" | diff - "+shellQuote(f.exec.Definition.Path))
	}
	way("restart it", p.restartLine(f.exec, "FILE"))
	if !f.exec.Status.IsRunning() {
		way("give it up", p.command("abandon", id))
	}
}

// waysAnew are those to another instance.
func (p *program) waysAnew(e *explanation, f *past) {
	path := f.exec.Definition.Path
	if path == "" || f.exec.RedriveOf != 0 || f.job == nil {
		return
	}
	if other, ok := otherParameter(f.job, f.exec.Params); ok && f.exec.Status == core.StatusCompleted {
		e.Commands = append(e.Commands, commandLine{"run another instance", p.command(runWords(path, other)...)})
	}
	e.Commands = append(e.Commands, commandLine{"run the same anew", p.command(runWords(path, declaredWords(f.job, f.exec.Params), "--again")...)})
}

// restartText says what a restart does.
func (p *program) restartText(e *explanation, f *past) []string {
	switch {
	case e.Refused != "" && e.Restart == nil:
		return []string{"It cannot be restarted: " + e.Refused + "."}
	case e.Refused != "":
		return []string{"A restart would fail: " + e.Refused + "."}
	}
	var text []string
	takes := "A restart"
	if f.exec.Status.IsRunning() {
		text = append(text, "Whoever runs or restarts it next takes it over.")
		takes = "That attempt"
	}
	switch {
	case f.exec.RedriveOf != 0:
		return append(text, fmt.Sprintf("It redrives items that execution %d skipped; redriven again, what is left of them runs.", f.exec.RedriveOf))
	case e.Restart == nil:
		return append(text, "This program does not understand the stored job file any more, so what a restart will do cannot be said: it passes what is complete.")
	}
	text = append(text, takes+" "+e.Restart.sentence()+".")
	if f.changed != "" {
		text = append(text, "The job file "+f.exec.Definition.Path+" "+f.changed+"; this is said of the file as it was.")
	}
	return text
}

// sentence is the plan in words, without its subject.
func (r *restartPlan) sentence() string {
	var clauses []string
	add := func(format string, names []string) {
		if len(names) > 0 {
			clauses = append(clauses, fmt.Sprintf(format, andWords(names)))
		}
	}
	add("passes %s", r.Passes)
	for _, s := range r.Resumes {
		clauses = append(clauses, s.clause())
	}
	add("runs %s again though it completed", r.Repeats)
	if len(r.Resumes)+len(r.Repeats) > 0 {
		add("then runs %s", r.Runs)
	} else {
		add("runs %s", r.Runs)
	}
	add("asks %s where to go on", r.Asks)
	if r.Stops != "" {
		clauses = append(clauses, "stops at "+r.Stops)
	}
	if r.isDone() {
		if r.Gate != "" {
			clauses = append(clauses, "asks again what the job is to expect ("+r.Gate+")")
		} else {
			clauses = append(clauses, "finds no step left to run, and ends as the flow says")
		}
	}
	add("runs %s in the end", r.Finally)
	return andWords(clauses)
}

func (s resumeRecord) clause() string {
	switch {
	case len(s.Parts)+s.Done > 0:
		text := fmt.Sprintf("goes on with %s, of which %s complete", s.Step, partitionCount(s.Done))
		if len(s.Parts) == 0 {
			return text
		}
		verb := "run"
		if len(s.Parts) == 1 {
			verb = "runs"
		}
		return text + " and " + andWords(most(s.Parts)) + " " + verb + " again"
	case s.From != "":
		return "goes on with " + s.Step + " behind " + s.From
	}
	return "runs " + s.Step + " again from its beginning"
}

func partitionCount(n int) string {
	if n == 1 {
		return "1 partition is"
	}
	return count(int64(n)) + " partitions are"
}

// mostNames is how many names a sentence has.
const mostNames = 8

func most(names []string) []string {
	if len(names) <= mostNames {
		return names
	}
	return append(names[:mostNames-1:mostNames-1], fmt.Sprintf("%d more", len(names)-mostNames+1))
}

// andWords joins as people do: a, b and c.
func andWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
