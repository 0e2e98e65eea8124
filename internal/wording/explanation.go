package wording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Explanation returns the paragraphs of an explanation.
func Explanation(e *operator.Explanation) []string {
	var list []string
	for _, sentences := range [][]string{
		append(append(statusSentences(e), placedSentences(e)...), causeSentences(e)...), stepsText(e), skipsText(e), append(decisionsText(e), gatesText(e)...), restartText(e),
	} {
		if len(sentences) > 0 {
			list = append(list, strings.Join(sentences, "\n")+"\n")
		}
	}
	return list
}

// Page is an explanation for people: its paragraphs, then the commands.
func Page(paragraphs []string, commands []CommandLine) string {
	var b strings.Builder
	b.WriteString(strings.Join(paragraphs, "\n"))
	width := 0
	for _, c := range commands {
		width = max(width, len(c.purpose()))
	}
	if len(commands) > 0 {
		b.WriteString("\n")
	}
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", width+1, c.purpose()+":", c.Command+c.Text)
	}
	return b.String()
}

// purpose is "2. restart it" for the second thing to do.
func (c CommandLine) purpose() string {
	if c.Order == 0 {
		return c.To
	}
	return fmt.Sprintf("%d. %s", c.Order, c.To)
}

func placedSentences(e *operator.Explanation) []string {
	var list []string
	for _, p := range e.Placed {
		list = append(list, "It waits: "+Placed(p)+".")
	}
	return list
}

func statusSentences(e *operator.Explanation) []string {
	what := fmt.Sprintf("Execution %d of job %s", e.Execution, e.JobName)
	if words := Given(e.Params.Parameters); words != "" {
		what += " (" + humanize.Clip(words, 200) + ")"
	}
	if e.Attempt > 1 {
		what += fmt.Sprintf(", attempt %d,", e.Attempt)
	}
	took := ""
	if !e.StartedAt.IsZero() {
		took = ", after " + humanize.Seconds(e.Duration)
	}
	switch e.Status {
	case core.StatusStarting:
		return append([]string{what + " is about to start, since " + humanize.Time(e.CreatedAt) + "."}, ownerText(e)...)
	case core.StatusParked:
		text := what + " is parked since it waits for partitions or tasks that other processes run"
		if e.StopRequested {
			text += ", and was asked to stop"
		}
		if e.Waiting != "" {
			return []string{text + ".", "No worker resumes it: " + strings.TrimRight(humanize.OneLine(e.Waiting), ".") + "."}
		}
		return []string{text + "."}
	case core.StatusStarted, core.StatusStopping:
		text := what + " is running since " + humanize.Time(e.StartedAt)
		if e.Status == core.StatusStopping || e.StopRequested {
			text += ", and was asked to stop"
			if e.Owner != nil {
				text += ": it ends after its current chunk"
			}
		}
		return append([]string{text + "."}, ownerText(e)...)
	case core.StatusCompleted:
		text := what + " is COMPLETED, since " + humanize.Time(e.EndedAt) + took
		if e.ExitCode != "" && e.ExitCode != core.ExitCompleted {
			text += ", with exit code " + e.ExitCode
		}
		return []string{text + "."}
	case core.StatusUnknown:
		if e.Refused == "" {
			return []string{what + " ended at " + humanize.Time(e.EndedAt) + took + ", and the reply to a COMMIT was lost: it is UNKNOWN until a restart reads its checkpoint."}
		}
		return []string{what + " ended at " + humanize.Time(e.EndedAt) + took + ", and its outcome is not known: it is UNKNOWN."}
	case core.StatusAbandoned:
		return []string{what + " is ABANDONED. It had ended at " + humanize.Time(e.EndedAt) + took + "."}
	case core.StatusFailed, core.StatusStopped:
	}
	text := what + " " + string(e.Status) + " at " + humanize.Time(e.EndedAt) + took
	if e.ExitCode != "" && e.ExitCode != string(e.Status) {
		text += ", with exit code " + e.ExitCode
	}
	return []string{text + "."}
}

func ownerText(e *operator.Explanation) []string {
	if e.Owner == nil {
		text := "No process owns it: workers that run its partitions commit their current chunks. After the last one, any process can end it."
		if e.Waiting != "" {
			text += "\nThe last process that tried could not: " + strings.TrimRight(humanize.OneLine(e.Waiting), ".") + "."
		}
		return []string{text}
	}
	who := fmt.Sprintf("process %d on host %s", e.Owner.PID, e.Owner.Host)
	until := "an unknown time"
	if !e.Owner.LeaseUntil.IsZero() {
		until = humanize.Time(e.Owner.LeaseUntil)
	}
	switch e.Lease {
	case operator.LeaseDead:
		return []string{"But its owner, " + who + ", is dead; its lease expires at " + until + "."}
	case operator.LeaseExpired:
		return []string{"But its owner, " + who + ", has sent no heartbeat: its lease expired at " + until + "."}
	case operator.LeaseHeld:
	}
	return []string{"Its owner is " + who + "; its lease lasts until " + until + "."}
}

func flowSentences(c *operator.Cause) []string {
	sentence := "Its flow stopped it."
	if reason := strings.TrimRight(humanize.OneLine(c.JobError), "."); reason != "" && (c.Step == "" || !strings.HasPrefix(reason, "step "+c.Step+": ")) {
		sentence = "Its flow stopped it: " + reason + "."
	}
	if c.Step == "" {
		return []string{sentence}
	}
	return []string{sentence, failureSentence(c)}
}

func failureSentence(c *operator.Cause) string {
	where := ""
	if c.Item != "" {
		where += " at " + c.Item
	}
	if c.Class != "" {
		where += " with an error of class " + c.Class
	}
	return "Step " + c.Step + " failed" + where + ": " + strings.TrimRight(humanize.OneLine(c.Error), ".") + "."
}

func causeSentences(e *operator.Explanation) []string {
	c := e.Cause
	if c == nil {
		return nil
	}
	text := strings.TrimRight(humanize.OneLine(c.Error), ".")
	switch c.Kind {
	case operator.CauseOwnerLost:
		return []string{fmt.Sprintf("Its owner, process %d on host %s, was lost: it died or stopped sending heartbeats, and the execution was taken over.", c.Owner.PID, c.Owner.Host)}
	case operator.CauseStopRequested:
		if c.Step != "" {
			return []string{"A stop was requested, and step " + c.Step + " ended after its current chunk."}
		}
		return []string{"A stop was requested."}
	case operator.CauseFlow:
		return flowSentences(c)
	case operator.CauseGate:
		if c.Step == "" {
			return []string{"Its steps are complete, but the job's expectation does not hold."}
		}
		return []string{"Step " + c.Step + " did its work, but its expectation does not hold."}
	case operator.CauseError:
		return []string{"The reason: " + text + "."}
	case operator.CauseStep:
	}
	sentences := []string{failureSentence(c)}
	if c.JobError != "" {
		sentences = append(sentences, "The job says: "+strings.TrimRight(humanize.OneLine(c.JobError), ".")+".")
	}
	return sentences
}

func stepsText(e *operator.Explanation) []string {
	var list []string
	for _, s := range e.Steps {
		list = append(list, stepSentence(s, e.Execution)+".")
	}
	for _, file := range e.Files {
		switch {
		case file.InView:
			list = append(list, "File "+file.Path+" is complete and published.")
		case file.Bytes != nil:
			list = append(list, fmt.Sprintf("File %s is not published yet: %s has %s committed bytes.", file.Path, file.Part, humanize.Count(*file.Bytes)))
		default:
			list = append(list, "Nothing of file "+file.Path+" is committed.")
		}
	}
	if len(e.Steps) == 0 && e.Status.IsOver() {
		list = append(list, "No step ran.")
	}
	return list
}

func stepSentence(s operator.StepView, current core.JobExecutionID) string {
	text := "Step " + s.Step
	switch {
	case s.Execution != current && s.Status == core.StatusAbandoned:
		return text + fmt.Sprintf(" failed in execution %d, was abandoned, and is passed", s.Execution)
	case s.Execution != current:
		text += fmt.Sprintf(" was completed by execution %d", s.Execution)
	case s.Exit == core.ExitNoop:
		return text + " did not run: its condition did not hold"
	case s.Status == core.StatusParked:
		text += " waits for its partitions or tasks"
	case s.Status.IsRunning():
		text += " is running"
	default:
		text += " " + StatusAndExit(s.Status, s.Exit)
	}
	if s.Read+s.Written+s.Filtered+s.Skipped+s.Commits > 0 {
		text += ": " + countersText(s)
	}
	if s.Partitions != nil {
		return text + "; " + partitionsText(s.Partitions)
	}
	switch {
	case s.Status == core.StatusCompleted || s.Kind != "chunk":
	case s.Position != "":
		text += ", committed up to " + s.Position
	case s.CommittedIn != "":
		text += "; a restart counts what it committed in database " + s.CommittedIn
	case s.CommitProblem != "":
		text += "; its committed work is not known: " + humanize.OneLine(s.CommitProblem)
	case s.Commits == 0:
		text += "; nothing is committed"
	}
	if s.Undone > 0 {
		text += "; " + humanize.Count(s.Undone) + " more read in the chunk that was rolled back"
	}
	return text
}

// Read is how many items a step has read, of how many: the rest was skipped while reading.
func Read(s *operator.StepView) string {
	if s.ReadSkipped == 0 {
		return humanize.Count(s.Read)
	}
	return humanize.Count(s.Read) + " of " + humanize.Count(s.Read+s.ReadSkipped)
}

func countersText(s operator.StepView) string {
	text := Read(&s) + " read, " + humanize.Count(s.Written) + " written"
	if s.Filtered > 0 {
		text += ", " + humanize.Count(s.Filtered) + " filtered"
	}
	if s.Skipped > 0 {
		text += ", " + humanize.Count(s.Skipped) + " skipped"
	}
	switch {
	case s.ReadSkipped > 0 && s.ReadSkipped == s.Skipped:
		text += " (while reading)"
	case s.ReadSkipped > 0:
		text += " (" + humanize.Count(s.ReadSkipped) + " while reading)"
	}
	if s.Resumed {
		text += " in all attempts"
	}
	return text
}

func partitionsText(ps *operator.PartitionsView) string {
	var names []string
	for _, part := range ps.List {
		if part.Status == core.StatusCompleted {
			continue
		}
		name := part.Step + " is " + string(part.Status)
		if part.Position != "" {
			name += " after " + part.Position
		}
		if part.Error != "" && (part.Status == core.StatusFailed || part.Status == core.StatusStarting) {
			name += " (" + humanize.Clip(humanize.OneLine(part.Error), 200) + ")"
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("%s of %s complete", humanize.Count(ps.Statuses[core.StatusCompleted]), Parts(ps, ps.Total))
	if len(names) == 0 {
		return text
	}
	return text + ", " + humanize.And(humanize.Few(names, ps.Omitted))
}

func skipsText(e *operator.Explanation) []string {
	steps := map[string][]operator.SkipCount{}
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
		slices.SortStableFunc(steps[step], func(a, b operator.SkipCount) int { return int(b.Count - a.Count) })
		for _, c := range steps[step] {
			total, left = total+c.Count, left+c.Left
			class := c.Class
			if class == "" {
				class = "of no class"
			}
			words = append(words, fmt.Sprintf("%s in %s (%s)", humanize.Count(c.Count), c.Phase, class))
		}
		text := "Step " + step + " skipped "
		if steps[step][0].More {
			text += "at least "
		}
		text += humanize.Plural(int(total), "item")
		if slices.ContainsFunc(e.Steps, func(s operator.StepView) bool { return s.Step == step && s.Resumed }) {
			text += " in this attempt"
		}
		text += ": " + humanize.And(words)
		if done := total - left; done > 0 {
			text += "; " + humanize.Count(done) + " of them redriven since"
		}
		list = append(list, text+".")
	}
	return list
}

func decisionsText(e *operator.Explanation) []string {
	var list []string
	for _, d := range e.Decisions {
		if d.Verdict == core.ExitNoop {
			if slices.ContainsFunc(e.Steps, func(s operator.StepView) bool { return s.Step == d.Element }) {
				continue // its step reports it
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

func gatesText(e *operator.Explanation) []string {
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

// PartsDone is "2 of 3 partitions".
func PartsDone(done, total int) string {
	return humanize.Count(done) + " of " + humanize.Plural(total, "partition")
}

// Parts is "n partitions", or "n branches" for a split.
func Parts(ps *operator.PartitionsView, n int) string {
	switch {
	case !ps.Branches:
		return humanize.Plural(n, "partition")
	case n == 1:
		return "1 branch"
	}
	return humanize.Count(n) + " branches"
}

// StatusAndExit adds an exit code that differs from the status.
func StatusAndExit(s core.Status, exit string) string {
	if exit == "" || exit == string(s) {
		return string(s)
	}
	return string(s) + " " + exit
}

// Placed says which work waits for which worker.
func Placed(p operator.PlacedWork) string {
	names := strings.Join(p.Names, ", ")
	if more := p.Count - len(p.Names); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s (on %s): %s", names, p.On, p.Waits)
}

// DiffLines returns the lines of a difference.
func DiffLines(diff string) []string {
	if diff == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
}
