package wording

import (
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
)

// Overview writes the sentences of an overview into its needs.
func Overview(o *operator.Overview) *operator.Overview {
	for i := range o.Needs {
		o.Needs[i].Text = Need(&o.Needs[i], o.At)
	}
	return o
}

// NeedOrder is the order of needs.
const NeedOrder = "The most urgent first: what waits for a process or a worker, then failures, what is slow, wrong or was left out, stopped executions, skipped items. Of each kind, jobs with a schedule come first, then the newest executions."

const maxNeedError = 300

// Need says why something needs a person.
func Need(n *operator.Need, now time.Time) string {
	switch n.Reason {
	case operator.NeedNoLeader:
		return fmt.Sprintf("No process leads: nothing starts the runs of %s.", humanize.Plural(n.Count, "registered schedule"))
	case operator.NeedLate:
		return fmt.Sprintf("A scheduled run of job %s is %s late: it has not begun.", n.Job, humanize.Seconds(n.Seconds))
	case operator.NeedLeftOut:
		return fmt.Sprintf("Times of the schedule of job %s were left out: %s.", n.Job, n.Error)
	case operator.NeedSchedule:
		return fmt.Sprintf("This program does not understand the schedule of job %s: %s.", n.Job, clipped(n.Error))
	case operator.NeedFile:
		return wrongFile(n)
	case operator.NeedInVain:
		return fmt.Sprintf("%s of type %s wait, and no live worker executes them.", counted(n, "task"), n.Name)
	case operator.NeedEvents:
		return fmt.Sprintf("%s of topic %s are dead: they are not offered any more.", counted(n, "event"), n.Name)
	case operator.NeedLostOwner, operator.NeedNoWorker, operator.NeedNoCommit, operator.NeedSlow, operator.NeedUnknown, operator.NeedFailed, operator.NeedStopped,
		operator.NeedSkips:
	}
	return needOfExecution(n, now)
}

func needOfExecution(n *operator.Need, now time.Time) string {
	execution := needy(n)
	switch n.Reason {
	case operator.NeedLostOwner:
		return fmt.Sprintf("%s lost its process %d on host %s: %s.", execution, n.Owner.PID, n.Owner.Host, Lease(n.Owner, now))
	case operator.NeedNoWorker:
		return execution + " waits: " + noWorker(n) + "."
	case operator.NeedNoCommit:
		return fmt.Sprintf("%s: its step %s has not committed for %s.", execution, n.Step, humanize.Seconds(n.Seconds))
	case operator.NeedSlow:
		return fmt.Sprintf("%s has run for %s; completed ones rarely took more than %s.", execution, humanize.Seconds(n.Seconds), humanize.Seconds(n.Usual))
	case operator.NeedUnknown:
		return execution + ": whether its last commit succeeded is unknown."
	case operator.NeedStopped:
		return execution + " was stopped."
	case operator.NeedSkips:
		return fmt.Sprintf("%s: %s not redriven.", execution, are(n))
	default:
		text := execution + " failed"
		if n.Error != "" {
			text += ": " + clipped(n.Error)
		}
		return strings.TrimSuffix(text, ".") + "."
	}
}

func are(n *operator.Need) string {
	if n.Count == 1 && !n.More {
		return "1 skipped item was"
	}
	return counted(n, "skipped item") + " were"
}

func needy(n *operator.Need) string {
	text := "Execution " + ID(n.Execution)
	if n.RedriveOf != 0 {
		text += ", a redrive of " + ID(n.RedriveOf) + ","
	}
	text += " of job " + n.Job
	if n.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", n.Attempt)
	}
	return text
}

func noWorker(n *operator.Need) string {
	if n.Waiting.NoWorker() {
		text := "no live worker of engine " + n.Waiting.Engine + " continues it"
		if n.Waiting.OpenWork != (ports.OpenWork{}) {
			text = n.Waiting.String() + " are open, and " + text
		}
		return text
	}
	var words []string
	for _, p := range n.Placed {
		if p.Unfit {
			words = append(words, Placed(p))
		}
	}
	return strings.Join(words, "; ")
}

func wrongFile(n *operator.Need) string {
	text := fmt.Sprintf("The job file of job %s is wrong", n.Job)
	if n.Registered {
		text = fmt.Sprintf("This program does not understand the registered file of job %s", n.Job)
	}
	if len(n.Problems) == 0 {
		return text + "."
	}
	text += ": " + clipped(FileProblem(n.Problems[0]))
	if more := len(n.Problems) - 1; more > 0 {
		text += "; and " + humanize.Plural(more, "other mistake")
	}
	return strings.TrimSuffix(text, ".") + "."
}

// FileProblem is a mistake with its position and its cure, on one line.
func FileProblem(p operator.FileProblem) string {
	text := p.Message
	switch {
	case p.Line > 0:
		text = fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	case p.File != "" && !strings.Contains(p.Message, p.File):
		text = p.File + ": " + p.Message
	}
	if p.Cure != "" {
		text += " (" + p.Cure + ")"
	}
	return humanize.OneLine(text)
}

// Ended counts the executions of a window: "In the last 24 hours 12 executions ended: 11 COMPLETED, 1 FAILED."
func Ended(e *operator.EndedInWindow) string {
	since := "In the last " + span(e.Window)
	if e.Total == 0 {
		return since + " no execution ended."
	}
	text := fmt.Sprintf("%s %s ended: %s.", since, humanize.Plural(e.Total, "execution"), StatusCounts(e.Statuses))
	if e.More {
		text = fmt.Sprintf("%s more executions ended than are counted; since %s: %s.", since, humanize.Time(e.Since), StatusCounts(e.Statuses))
	}
	return text
}

// span is a whole number of days, or a duration.
func span(seconds float64) string {
	const day = 24 * time.Hour
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d > day && d%day == 0:
		return humanize.Plural(int(d/day), "day")
	case d%time.Hour == 0:
		return humanize.Plural(int(d/time.Hour), "hour")
	}
	return humanize.Duration(d)
}

func counted(n *operator.Need, one string) string {
	if n.More {
		return "More than " + humanize.Count(n.Count) + " " + one + "s"
	}
	return humanize.Plural(n.Count, one)
}

func clipped(text string) string { return humanize.Clip(humanize.OneLine(text), maxNeedError) }
