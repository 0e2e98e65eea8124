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

// Redrives lists the redrives of an execution, the newest first.
func Redrives(redrives []operator.Redrive) string {
	var words []string
	for _, e := range slices.Backward(redrives) {
		words = append(words, fmt.Sprintf("execution %d (%s)", e.Execution, e.Status))
	}
	return humanize.Join(words)
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
