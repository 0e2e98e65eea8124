package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ErrNotFrom is in the chain of every *FromError.
var ErrNotFrom = errors.New("a restart cannot begin there")

// FromCause is why a restart cannot begin at an element.
type FromCause string

// The causes of a FromError.
const (
	FromUnknown   FromCause = "unknown"   // the job has no such element
	FromUnreached FromCause = "unreached" // no attempt that counts has reached it
	FromFinally   FromCause = "finally"   // it runs at the end of every execution
	FromBeside    FromCause = "beside"    // another branch of its split has not completed
)

// FromError refuses a restart from an element of the flow (rule F3a).
type FromError struct {
	Job, Element string
	Cause        FromCause
	// Known are the flow's elements, Reached those at which a restart may
	// begin, in the definition's order.
	Known, Reached []string
	// Near is the one probably intended, or empty.
	Near string
	// Open has not completed in Split (FromBeside).
	Split, Open string
}

func (e *FromError) Error() string {
	switch e.Cause {
	case FromUnreached:
		return fmt.Sprintf("job %s: no attempt that counts has reached %s: a plain restart reaches it by itself; a restart can begin at %s",
			e.Job, e.Element, listed(e.Reached))
	case FromFinally:
		return fmt.Sprintf("job %s: %s is in `finally`, which runs at the end of every execution; a restart can begin at %s", e.Job, e.Element, listed(e.Reached))
	case FromBeside:
		return fmt.Sprintf("job %s: %s is in a branch of split %s, and %s in another branch has not completed: a plain restart completes it; a restart from %s runs all branches again",
			e.Job, e.Element, e.Split, e.Open, e.Split)
	case FromUnknown:
	}
	near := ""
	if e.Near != "" {
		near = " (did you mean " + e.Near + "?)"
	}
	return fmt.Sprintf("job %s has no step or element %s%s: it has %s; restart a step of a child job with the execution of that job",
		e.Job, e.Element, near, listed(e.Known))
}

func (e *FromError) Unwrap() error { return ErrNotFrom }

const maxListed = 20

func listed(names []string) string {
	switch more := len(names) - maxListed; {
	case len(names) == 0:
		return "none"
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// From starts an attempt at the last visit of an element. The attempt's journal
// holds the visits before it.
type From struct {
	after core.JobExecutionID
	rows  []ports.FlowVisit
	kept  map[string]bool
}

// NewFrom returns the start of an attempt that follows last, and runs the
// element and everything after it again. An element of a group stands for the
// group. The error may be a *FromError.
func NewFrom(ctx context.Context, repository Repository, j *model.Job, last *core.JobExecution, element string) (*From, error) {
	journal, _, err := Read(ctx, repository, last.InstanceID, last.AnewSince())
	if err != nil {
		return nil, err
	}
	b := &fromBuilder{job: j, journal: journal, element: element, from: &From{after: last.ID, kept: map[string]bool{}}}
	return b.from, b.build()
}

// Records returns the kept history, for a comparison: elements that run again
// may change.
func (f *From) Records(of ports.Explorer, instance core.JobInstanceID) ports.Explorer {
	return &keptRecords{Explorer: of, kept: f.kept, instance: instance}
}

type keptRecords struct {
	ports.Explorer
	kept     map[string]bool
	instance core.JobInstanceID
}

func (r *keptRecords) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
	steps, err := r.Explorer.LastSteps(ctx, id, since)
	if id == r.instance {
		maps.DeleteFunc(steps, func(name string, _ ports.StepHistory) bool { return !r.kept[name] })
	}
	return steps, err
}

// Read returns journal and history as before the attempt, for a plan.
func (f *From) Read(ctx context.Context, repository Repository) (*Journal, map[string]ports.StepHistory, error) {
	rows := make([]ports.JournalRow, len(f.rows))
	for i, row := range f.rows {
		rows[i] = ports.JournalRow{FlowVisit: row, Execution: f.after}
	}
	history := map[string]ports.StepHistory{}
	j, err := newJournal(ctx, repository, rows, history)
	if err != nil {
		return nil, nil, fmt.Errorf("read the history of the instance: %w", err)
	}
	return j, history, nil
}

// Launch returns the launch request's part.
func (f *From) Launch(ifComplete bool) *ports.LaunchFrom {
	if f == nil {
		return nil
	}
	return &ports.LaunchFrom{After: f.after, IfComplete: ifComplete, Visits: f.rows}
}

type fromBuilder struct {
	job     *model.Job
	journal *Journal
	element string
	from    *From
}

func (b *fromBuilder) refuse(cause FromCause) *FromError {
	return &FromError{Job: b.job.Name, Element: b.element, Cause: cause, Known: b.namesIn(b.job.Flow), Reached: b.reachedIn(b.job.Flow, "", AllAttempts())}
}

func (b *fromBuilder) build() error {
	path := pathTo(b.job.Flow, b.element)
	switch {
	case path != nil:
		return b.keepTo(b.job.Flow, "", b.journal.Log(b.job.Flow, "", AllAttempts()), path)
	case pathTo(b.job.Finally, b.element) != nil:
		return b.refuse(FromFinally)
	}
	return b.refuse(FromUnknown)
}

type branchPath struct {
	at     model.Element
	branch int
}

// An element in a group stands for the group.
func pathTo(flow model.Flow, name string) []branchPath {
	for _, at := range flow.Elements {
		if record, _ := StepName(at); at.ElementName() == name || record == name {
			return []branchPath{{at: at}}
		}
		for branch, inner := range model.Flows(at) {
			path := pathTo(inner, name)
			switch _, isGroup := at.(*model.AtomicElement); {
			case path == nil:
			case isGroup:
				return []branchPath{{at: at}}
			default:
				return append([]branchPath{{at, branch}}, path...)
			}
		}
	}
	return nil
}

func (b *fromBuilder) namesIn(flow model.Flow) []string {
	var names []string
	for _, at := range flow.Elements {
		names = append(names, at.ElementName())
		for _, inner := range model.Flows(at) {
			names = append(names, b.namesIn(inner)...)
		}
	}
	return names
}

func (b *fromBuilder) reachedIn(flow model.Flow, id string, within Attempts) []string {
	entries := b.journal.Log(flow, id, within).Entries
	var names []string
	for _, at := range flow.Elements {
		i := indexOf(entries, at)
		if i < 0 {
			continue
		}
		e := entries[i]
		names = append(names, at.ElementName())
		if _, isGroup := at.(*model.AtomicElement); isGroup || !e.IsVisit() {
			continue
		}
		for branch, inner := range model.Flows(at) {
			names = append(names, b.reachedIn(inner, e.Inner.Inner(branch), e.Within)...)
		}
	}
	return names
}

// indexOf may be that of the restart point of an attempt that died before it,
// or -1.
func indexOf(entries []Entry, at model.Element) int {
	return slices.IndexFunc(entries, func(e Entry) bool {
		return e.Element == at.ElementName() && (e.IsVisit() || e.Kind == ports.VisitJump && e.Target == e.Element)
	})
}

func (b *fromBuilder) keepTo(flow model.Flow, id string, l Log, path []branchPath) error {
	at := path[0].at
	i := indexOf(l.Entries, at)
	if i < 0 || len(path) > 1 && !l.Entries[i].IsVisit() {
		return b.refuse(FromUnreached)
	}
	for _, e := range l.Entries[:i] {
		b.keepEntry(flow, id, e)
	}
	e := l.Entries[i]
	v := core.Visit{Flow: id, Ordinal: e.Ordinal, Element: at.ElementName()}
	if len(path) == 1 { // a log begins with a visit of its first element
		v.Ordinal = max(v.Ordinal, 2)
		b.add(ports.FlowVisit{Visit: v, Kind: ports.VisitJump, Target: at.ElementName()})
		return nil
	}
	if flow, is := at.(*model.FlowElement); is && flow.AsStep { // rows inside do not prove a visit
		b.add(ports.FlowVisit{Visit: v, Kind: ports.VisitFlow})
	}
	for branch, inner := range model.Flows(at) {
		log := b.journal.Log(inner, e.Inner.Inner(branch), e.Within)
		if branch == path[0].branch {
			if err := b.keepTo(inner, v.Inner(branch), log, path[1:]); err != nil {
				return err
			}
			continue
		}
		if open := openIn(inner, log); open != "" {
			refused := b.refuse(FromBeside)
			refused.Split, refused.Open = at.ElementName(), open
			return refused
		}
		b.keepAll(inner, v.Inner(branch), log)
	}
	return nil
}

// empty: a restart would run nothing of the branch.
func openIn(flow model.Flow, l Log) string {
	if len(l.Entries) == 0 {
		return ""
	}
	e := l.Entries[len(l.Entries)-1]
	at, ok := flow.Find(e.Element)
	if !ok {
		return ""
	}
	out, ok := e.Outcome()
	if !e.IsVisit() || !ok {
		return e.Element
	}
	to, leads := model.Next(at.Edges(), out.Status, out.ExitCode)
	if !leads && out.Status == core.StatusCompleted || leads && (to.Kind == model.TargetElement || to.Kind == model.TargetEnd) {
		return ""
	}
	return e.Element
}

func (b *fromBuilder) keepAll(flow model.Flow, id string, l Log) {
	for _, e := range l.Entries {
		b.keepEntry(flow, id, e)
	}
}

func (b *fromBuilder) keepEntry(flow model.Flow, id string, e Entry) {
	at, ok := flow.Find(e.Element)
	if !ok {
		return
	}
	row := ports.FlowVisit{Visit: core.Visit{Flow: id, Ordinal: e.Ordinal, Element: e.Element}, Kind: e.Kind, Verdict: e.Verdict, Target: e.Target}
	if _, isStep := StepName(at); isStep && e.Record != nil {
		row.Kind, row.Verdict, row.Target = ports.VisitPass, "", strconv.FormatInt(int64(e.Record.ID), 10)
		b.from.kept[e.Record.Name] = true
		b.add(row)
		return
	}
	if len(model.Flows(at)) == 0 || e.Kind == ports.VisitNoop {
		b.add(row)
		return
	}
	if out, ok := e.Outcome(); ok {
		row.Kind, row.Verdict, row.Target = ports.VisitFlow, VerdictOf(out), ""
		if _, isGroup := at.(*model.AtomicElement); isGroup {
			row.Kind = ports.VisitGroup
		}
		b.add(row)
	}
	for branch, inner := range model.Flows(at) {
		b.keepAll(inner, row.Inner(branch), b.journal.Log(inner, e.Inner.Inner(branch), e.Within))
	}
}

func (b *fromBuilder) add(row ports.FlowVisit) { b.from.rows = append(b.from.rows, row) }
