package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// executionTable is a table of executions. Identifying parameters that many of its rows have are columns.
type executionTable struct {
	Rows    []executionLine
	Columns []string
	// Others: some rows have further parameters.
	Others bool
	// Failed: some rows have a step that failed.
	Failed bool
	// Chosen is the form for the rows that are chosen; empty if none can be.
	Chosen string
}

// Width is the number of its columns.
func (t executionTable) Width() int {
	const always = 7
	n := always + len(t.Columns)
	if t.Others {
		n++
	}
	if t.Failed {
		n++
	}
	if t.Chosen != "" {
		n++
	}
	return n
}

type executionLine struct {
	link
	Job     link
	Status  statusView
	Exit    string
	Attempt int
	// Values are of the columns, in their order; Params are the other parameters.
	Values  []string
	Params  string
	Created moment
	Started moment
	Ended   moment
	Took    string
	// Step is the one that failed, with its place in the flow.
	Step  *link
	Error string
	Owner string
	Waits string
}

func (v *visit) executionTable(found []operator.Execution) executionTable {
	names := parameterColumns(found)
	var t executionTable
	for _, name := range names {
		t.Columns = append(t.Columns, clip(name, shortText))
	}
	for i := range found {
		l := v.executionLine(&found[i], names)
		t.Rows = append(t.Rows, l)
		t.Others, t.Failed = t.Others || l.Params != "", t.Failed || l.Step != nil
	}
	return t
}

// parameterColumns are at most four parameters, each of at least half of the executions. The parameters of most
// executions come first.
func parameterColumns(found []operator.Execution) []string {
	const most = 4
	counts := map[string]int{}
	for i := range found {
		for _, p := range operator.Given(found[i].Params.Identifying()) {
			counts[p.Name]++
		}
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return 2*n < len(found) })
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	return names[:min(len(names), most)]
}

func (v *visit) executionLine(e *operator.Execution, columns []string) executionLine {
	l := executionLine{
		link: v.executionLink(e.ID), Job: link{clip(e.JobName, shortText), v.jobLink(e.JobName)}, Status: status(e.Status), Exit: exitOf(e.Status, e.ExitCode),
		Attempt: e.Attempt, Created: v.moment(e.CreatedAt), Started: v.moment(e.StartedAt), Ended: v.moment(e.EndedAt), Values: make([]string, len(columns)),
	}
	var others []core.Parameter
	for _, p := range operator.Given(e.Params.Identifying()) {
		if at := slices.Index(columns, p.Name); at >= 0 {
			l.Values[at] = clip(v.masked(p.Text()), shortText)
		} else {
			others = append(others, p)
		}
	}
	l.Params = clip(v.masked(strings.TrimSpace(wording.Parameters(others)+" "+wording.RedriveOf(e.Params.Parameters))), lineText)
	text := e.Error
	if e.FailedStep != "" {
		l.Step = &link{clip(e.FailedStep, shortText), l.Href + "?element=" + query(e.FailedStep) + "#element"}
		text = strings.TrimPrefix(text, "step "+e.FailedStep+": ")
	}
	l.Error = clip(v.masked(text), lineText)
	if !e.StartedAt.IsZero() {
		l.Took = humanize.Seconds(e.Duration)
	}
	if e.Owner != nil {
		l.Owner = wording.Process(e.Owner.PID, clip(e.Owner.Host, shortText))
		if e.Owner.Dead || e.Owner.Lost {
			l.Waits = wording.Lease(e.Owner, v.Now())
		}
	}
	if e.Waiting != nil {
		l.Waits, l.Error = v.Commands.Parked(e.Waiting), ""
	}
	return l
}
