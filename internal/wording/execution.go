package wording

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Lease describes the lease of an execution; for an expired one, why it is not
// taken over.
func Lease(o *operator.Owner, now time.Time) string {
	until, over := humanize.Time(o.LeaseUntil), now.Sub(o.LeaseUntil)
	const byItself = "; no process takes it over automatically"
	switch {
	case o.Dead:
		return "which is dead" + byItself
	case over > 0 && o.Lost:
		return "lease expired " + humanize.Duration(over) + " ago" + byItself
	case over > 0:
		return "lease until " + until + " by the database's clock, which is behind this machine's"
	case o.Lost:
		return "lease expired by the database's clock" + byItself
	}
	return "lease until " + until
}

// WorkerLease describes the lease of a part; for an expired one, why no other
// worker has it.
func WorkerLease(w *operator.Owner, now time.Time) string {
	over := now.Sub(w.LeaseUntil)
	if !w.Lost {
		return "lease until " + humanize.Time(w.LeaseUntil)
	}
	text := "which is dead"
	if !w.Dead {
		text = "lease expired " + humanize.Duration(over) + " ago"
	}
	return text + "; no worker has polled for parts since"
}

// Tasks counts the tasks of a step: "4 tasks: 1 RUNNING, 3 SUCCEEDED".
func Tasks(t *operator.StepTasks) string {
	var words []string
	all := 0
	for _, state := range slices.Sorted(maps.Keys(t.States)) {
		all += t.States[state]
		words = append(words, humanize.Count(t.States[state])+" "+state)
	}
	return humanize.Plural(all, "task") + ": " + humanize.Join(words)
}

// Redrives lists the redrives of an execution and of earlier attempts, the newest first.
func Redrives(e *operator.ExecutionView) string {
	var words []string
	for _, r := range slices.Backward(e.Redrives) {
		words = append(words, Redrive(r, e.ID))
	}
	return humanize.Join(words)
}

// Redrive is a redrive on the page of an execution: of its items, or of an earlier attempt.
func Redrive(r operator.Redrive, on core.JobExecutionID) string {
	text := fmt.Sprintf("execution %d (%s)", r.Execution, r.Status)
	if r.Of != on {
		text += fmt.Sprintf(", for items of execution %d", r.Of)
	}
	return text
}

// Out formats the values that a step hands on.
func Out(out map[string]any) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(out)) {
		words = append(words, fmt.Sprintf("%s=%v", name, out[name]))
	}
	return humanize.Clip(strings.Join(words, " "), 2000)
}

// StatusCounts returns a text such as "12 COMPLETED, 2 FAILED".
func StatusCounts(counts map[core.Status]int) string {
	var words []string
	for _, status := range core.Statuses() {
		if k := counts[status]; k > 0 {
			words = append(words, humanize.Count(k)+" "+string(status))
		}
	}
	return humanize.Join(words)
}

// Move formats a change of status.
func Move(from, to core.Status) string {
	switch {
	case from == "" && to == "":
		return "-"
	case from == "" || from == to:
		return string(to)
	}
	return string(from) + " -> " + string(to)
}

// RedriveOf is "redrive of step load of execution 1 (number 1)"; empty for parameters of another execution.
func RedriveOf(ps core.Parameters) string {
	of, step, n := operator.RedriveOf(ps)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("redrive of step %s of execution %s (number %d)", step, of, n)
}

// Given formats the identifying parameters, and the source of a redrive.
func Given(ps core.Parameters) string {
	text := Parameters(operator.Given(ps.Identifying()))
	if redrive := RedriveOf(ps); redrive != "" {
		text = strings.TrimSpace(text + " " + redrive)
	}
	return text
}

// Actor is the actor of an act, as pages and tables show it: a client of the API by its name.
func Actor(stored string) string {
	if name, is := strings.CutPrefix(stored, ports.ClientActor); is {
		return name + " (token)"
	}
	return stored
}

// ActDetail is the detail of an act, with its actor as Actor has it.
func ActDetail(stored string) string {
	const by = "for "
	client, is := strings.CutPrefix(stored, by)
	if !is || !strings.HasPrefix(client, ports.ClientActor) {
		return stored
	}
	client, reason, more := strings.Cut(client, ": ")
	if more {
		reason = ": " + reason
	}
	return by + Actor(client) + reason
}

// Parameters formats parameters as words of a command line.
func Parameters(ps []core.Parameter) string {
	words := make([]string, len(ps))
	for i, p := range ps {
		words[i] = humanize.Quote(Parameter(p))
	}
	return strings.Join(words, " ")
}

// Parameter formats NAME=VALUE.
func Parameter(p core.Parameter) string { return p.Name + "=" + p.Text() }

// ID formats the number of an execution.
func ID(id core.JobExecutionID) string { return strconv.FormatInt(int64(id), 10) }
