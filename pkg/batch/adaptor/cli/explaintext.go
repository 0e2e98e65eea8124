package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// text is the explanation for people: paragraphs, then the commands.
func (e *explanation) text() string {
	var b strings.Builder
	b.WriteString(strings.Join(e.Text, "\n"))
	width := 0
	for _, c := range e.Commands {
		width = max(width, len(c.To))
	}
	if len(e.Commands) > 0 {
		b.WriteString("\n")
	}
	for _, c := range e.Commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", width+1, c.To+":", c.Command)
	}
	return b.String()
}

// paragraphs are the explanation, a sentence on each line.
func (p *program) paragraphs(e *explanation, f *past) []string {
	var list []string
	for _, sentences := range [][]string{
		append(p.statusText(e, f), causeText(e, f)...), stepsText(e, f), skipsText(e, f), append(decisionsText(e), gatesText(e)...), p.restartText(e, f),
	} {
		if len(sentences) > 0 {
			list = append(list, strings.Join(sentences, "\n")+"\n")
		}
	}
	return list
}

// statusText is how the execution ended, or what it is doing.
func (p *program) statusText(e *explanation, f *past) []string {
	x := f.exec
	what := fmt.Sprintf("Execution %d of job %s", x.ID, x.JobName)
	if words := parameterText(identifying(x.Params)); words != "" {
		what += " (" + clip(words, 200) + ")"
	}
	if x.Attempt > 1 {
		what += fmt.Sprintf(", attempt %d,", x.Attempt)
	}
	took := ""
	if !x.StartedAt.IsZero() {
		took = ", after " + durationText(elapsed(x.StartedAt, x.EndedAt, p.now()))
	}
	switch x.Status {
	case core.StatusStarting:
		return append([]string{what + " is about to start, since " + timeText(x.CreatedAt) + "."}, ownerText(e)...)
	case core.StatusStarted, core.StatusParked, core.StatusStopping:
		text := what + " is running since " + timeText(x.StartedAt)
		if x.Status == core.StatusStopping || x.StopRequested {
			text += ", and was asked to stop: it ends with the chunk in hand"
		}
		return append([]string{text + "."}, ownerText(e)...)
	case core.StatusCompleted:
		text := what + " is COMPLETED, since " + timeText(x.EndedAt) + took
		if x.ExitCode != "" && x.ExitCode != core.ExitCompleted {
			text += ", with exit code " + x.ExitCode
		}
		return []string{text + "."}
	case core.StatusUnknown:
		return []string{what + " ended at " + timeText(x.EndedAt) + took + ", and nobody can say how: it is UNKNOWN."}
	case core.StatusAbandoned:
		return []string{what + " was given up: it is ABANDONED. It had ended at " + timeText(x.EndedAt) + took + "."}
	case core.StatusFailed, core.StatusStopped:
	}
	text := what + " " + string(x.Status) + " at " + timeText(x.EndedAt) + took
	if x.ExitCode != "" && x.ExitCode != string(x.Status) {
		text += ", with exit code " + x.ExitCode
	}
	return []string{text + "."}
}

func ownerText(e *explanation) []string {
	who := fmt.Sprintf("process %d on host %s", e.Owner.PID, e.Owner.Host)
	until := "an unknown time"
	if e.Owner.LeaseUntil != nil {
		until = timeText(*e.Owner.LeaseUntil)
	}
	switch e.Lease {
	case leaseDead:
		return []string{"But its owner, " + who + ", is gone; its lease ends at " + until + "."}
	case leaseExpired:
		return []string{"But its owner, " + who + ", has given no sign of life: it is gone since " + until + ", when its lease ended."}
	case leaseHeld:
	}
	return []string{"Its owner is " + who + "; its lease lasts until " + until + "."}
}

// The texts with which the repository ends what nobody owns any more.
const (
	lostOwnerText   = "lost owner"
	stopRequestText = "stopped on request"
)

// causeText is why.
func causeText(e *explanation, f *past) []string {
	c := e.Cause
	if c == nil {
		return nil
	}
	text := strings.TrimRight(c.Error, ".")
	switch {
	case f.exec.Error == lostOwnerText || c.Error == lostOwnerText:
		return []string{fmt.Sprintf("Its owner, process %d on host %s, was lost: it died or gave no sign of life, and the execution was taken from it.", f.exec.Owner.PID, f.exec.Owner.Host)}
	case f.exec.Status == core.StatusStopped && f.exec.Error == stopRequestText:
		if c.Step != "" {
			return []string{"A stop was requested, and step " + c.Step + " ended with the chunk in hand."}
		}
		return []string{"A stop was requested."}
	case f.exec.Status == core.StatusStopped:
		return []string{"Its flow stopped it: " + strings.TrimRight(oneLine(f.exec.Error), ".") + "."}
	case f.exec.ExitCode == core.ExitExpectFailed && c.Step == "":
		return []string{"Its steps are complete, but what the job is to expect does not hold."}
	case c.Step == "":
		return []string{"The reason: " + text + "."}
	}
	for _, s := range f.steps {
		if s.Name == c.Step && s.ExitCode == core.ExitExpectFailed {
			return []string{"Step " + c.Step + " did its work, but what it is to expect does not hold."}
		}
	}
	where := ""
	if c.Item != "" {
		where += " at " + c.Item
	}
	if c.Class != "" {
		where += " with an error of class " + c.Class
	}
	sentence := "Step " + c.Step + " failed" + where + ": " + text + "."
	if own := strings.TrimPrefix(oneLine(f.exec.Error), "step "+c.Step+": "); own != "" && own != c.Error {
		return []string{sentence, "The job says: " + strings.TrimRight(own, ".") + "."}
	}
	return []string{sentence}
}

// stepsText is what is committed.
func stepsText(e *explanation, f *past) []string {
	var list []string
	for _, s := range e.Steps {
		list = append(list, s.sentence(e.Execution)+".")
	}
	for _, file := range e.Files {
		switch {
		case file.InView:
			list = append(list, "File "+file.Path+" is complete and in view.")
		case file.Bytes != nil:
			list = append(list, fmt.Sprintf("File %s is not in view yet: %s has %s committed bytes.", file.Path, file.Part, count(*file.Bytes)))
		default:
			list = append(list, "Nothing of file "+file.Path+" is committed.")
		}
	}
	if len(e.Steps) == 0 && !f.exec.Status.IsRunning() {
		list = append(list, "No step ran.")
	}
	return list
}

func (s committedRecord) sentence(current int64) string {
	status := core.Status(s.Status)
	text := "Step " + s.Step
	switch {
	case s.Execution != current && status == core.StatusAbandoned:
		return text + fmt.Sprintf(" failed in execution %d, was given up, and is passed", s.Execution)
	case s.Execution != current:
		text += fmt.Sprintf(" was completed by execution %d", s.Execution)
	case s.Exit == core.ExitNoop:
		return text + " did not run: its condition did not hold"
	case status.IsRunning():
		text += " is running"
	default:
		text += " " + statusAndExit(status, s.Exit)
	}
	if s.Read+s.Written+s.Filtered+s.Skipped+s.Commits > 0 {
		text += ": " + countersText(s)
	}
	if len(s.Partitions) > 0 {
		return text + "; " + partitionsText(s.Partitions)
	}
	switch {
	case status == core.StatusCompleted || s.Kind != "chunk":
	case s.Position != "":
		text += ", committed up to " + s.Position
	case s.Commits == 0:
		text += "; nothing of it is committed"
	}
	if s.Undone > 0 {
		text += "; " + count(s.Undone) + " more read in the chunk that was rolled back"
	}
	return text
}

// countersText uses the project's words, and leaves out what did not happen.
func countersText(s committedRecord) string {
	text := count(s.Read) + " read, " + count(s.Written) + " written"
	if s.Filtered > 0 {
		text += ", " + count(s.Filtered) + " filtered"
	}
	if s.Skipped > 0 {
		text += ", " + count(s.Skipped) + " skipped"
	}
	if s.Resumed {
		text += " in all attempts"
	}
	return text
}

// partitionsText counts what is complete and names what is not.
func partitionsText(parts []committedRecord) string {
	done := 0
	var names []string
	for _, part := range parts {
		if core.Status(part.Status) == core.StatusCompleted {
			done++
			continue
		}
		name := part.Step + " is " + part.Status
		if part.Position != "" {
			name += " behind " + part.Position
		}
		if part.Error != "" && part.Status == string(core.StatusFailed) {
			name += " (" + clip(part.Error, 200) + ")"
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("%s of %s complete", count(int64(done)), plural(len(parts), "partition"))
	if len(names) == 0 {
		return text
	}
	return text + ", " + andWords(most(names))
}

// skipsText is how many items were left out, and why.
func skipsText(e *explanation, f *past) []string {
	steps := map[string][]skipCountRecord{}
	var order []string
	for _, c := range e.Skipped {
		if steps[c.Step] == nil {
			order = append(order, c.Step)
		}
		steps[c.Step] = append(steps[c.Step], c)
	}
	var list []string
	for _, step := range order {
		var total, left int64
		var words []string
		slices.SortStableFunc(steps[step], func(a, b skipCountRecord) int { return int(b.Count - a.Count) })
		for _, c := range steps[step] {
			total, left = total+c.Count, left+c.Left
			class := c.Class
			if class == "" {
				class = "of no class"
			}
			words = append(words, fmt.Sprintf("%s in %s (%s)", count(c.Count), c.Phase, class))
		}
		text := "Step " + step + " skipped " + plural(int(total), "item")
		if f.resumed(step) {
			text += " in this attempt"
		}
		if f.partly {
			text += ", of the first ones that were looked at"
		}
		text += ": " + andWords(words)
		if done := total - left; done > 0 {
			text += "; " + count(done) + " of them redriven since"
		}
		list = append(list, text+".")
	}
	return list
}

// resumed reports whether the step went on from an earlier attempt.
func (f *past) resumed(step string) bool {
	return slices.ContainsFunc(f.steps, func(s core.StepExecution) bool { return s.Name == step && s.Before != core.Counters{} })
}

func decisionsText(e *explanation) []string {
	var list []string
	for _, d := range e.Decisions {
		if d.Verdict == core.ExitNoop {
			if e.ran(d.Element) {
				continue // its step says so
			}
			list = append(list, "The condition of "+d.Element+" did not hold.")
			continue
		}
		switch {
		case d.Target == d.Verdict:
			list = append(list, "Decision "+d.Element+" led to "+d.Target+".")
		case d.Target != "":
			list = append(list, "Decision "+d.Element+" answered "+d.Verdict+", and led to "+d.Target+".")
		default:
			list = append(list, "Decision "+d.Element+" answered "+d.Verdict+".")
		}
	}
	return list
}

func (e *explanation) ran(step string) bool {
	return slices.ContainsFunc(e.Steps, func(s committedRecord) bool { return s.Step == step })
}

func gatesText(e *explanation) []string {
	var list []string
	for _, g := range e.Gates {
		if g.Step == "" {
			list = append(list, "The job's gate: "+g.Gate+".")
			continue
		}
		list = append(list, "The gate of step "+g.Step+": "+g.Gate+".")
	}
	return list
}
