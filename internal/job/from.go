package job

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

// FromCause is the reason why a restart cannot begin at an element.
type FromCause string

// The causes of a FromError.
const (
	FromUnknown   FromCause = "unknown"   // the job has no such element
	FromUnreached FromCause = "unreached" // no attempt that counts has reached it
	FromFinally   FromCause = "finally"   // it runs at the end of every execution
	FromBeside    FromCause = "beside"    // another branch of its split has not completed
)

// FromError refuses a restart from an element of the flow (rule F3a). ErrNotFrom is in its chain.
type FromError struct {
	Job, Element string
	Cause        FromCause
	// Known are the elements of the flow, and Reached those at which a restart may begin, both in the
	// order of the definition.
	Known, Reached []string
	// Near is the element of Known that was probably intended; empty if none is near enough, or if no
	// search was made.
	Near string
	// Split is the split of FromBeside, and Open the element that has not completed there.
	Split, Open string
}

// Error states the cause and the possible elements.
func (e *FromError) Error() string {
	switch e.Cause {
	case FromUnreached:
		return fmt.Sprintf("job %s: no attempt that counts has come to %s: a plain restart comes to it by itself; a restart may begin at %s",
			e.Job, e.Element, listed(e.Reached))
	case FromFinally:
		return fmt.Sprintf("job %s: %s is in `finally`, which runs at the end of every execution; a restart may begin at %s", e.Job, e.Element, listed(e.Reached))
	case FromBeside:
		return fmt.Sprintf("job %s: %s is in a branch of split %s, and %s in a branch beside it has not completed: a plain restart completes it, or a restart from %s runs all branches anew",
			e.Job, e.Element, e.Split, e.Open, e.Split)
	case FromUnknown:
	}
	near := ""
	if e.Near != "" {
		near = " (did you mean " + e.Near + "?)"
	}
	return fmt.Sprintf("job %s has no step or element %s%s: there is %s; a step of a child job is restarted with the execution of that job",
		e.Job, e.Element, near, listed(e.Known))
}

// Unwrap returns ErrNotFrom.
func (e *FromError) Unwrap() error { return ErrNotFrom }

// maxListed is how many elements an error names.
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

// From is the start of an attempt that runs a part of the flow again: the last visit of an element. The
// attempt's journal holds the visits before it.
type From struct {
	after core.JobExecutionID
	// rows are the journal of the attempt as it begins, and kept the steps in it.
	rows []ports.FlowVisit
	kept map[string]bool
}

// NewFrom returns the start of an attempt that follows last, the newest execution of its instance, and
// runs the element and everything after it again. An element of a group stands for the group. The error
// is a *FromError, or one of the repository.
func NewFrom(ctx context.Context, repository ports.JobRepository, j *model.Job, last *core.JobExecution, element string) (*From, error) {
	history, err := repository.LastSteps(ctx, last.InstanceID, last.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the history of the instance: %w", err)
	}
	journal, err := newJournal(ctx, repository, last, history)
	if err != nil {
		return nil, fmt.Errorf("read the history of the instance: %w", err)
	}
	k := &keeper{job: j, journal: journal, element: element, from: &From{after: last.ID, kept: map[string]bool{}}}
	return k.from, k.keep()
}

// Records returns the history that the attempt keeps, for a comparison of definitions: elements that
// run again may change.
func (f *From) Records(of ports.Explorer, instance core.JobInstanceID) ports.Explorer {
	return &keptRecords{Explorer: of, kept: f.kept, instance: instance}
}

// keptRecords hides the steps of an instance that are not kept.
type keptRecords struct {
	ports.Explorer
	kept     map[string]bool
	instance core.JobInstanceID
}

// LastSteps implements ports.Explorer.
func (r *keptRecords) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
	steps, err := r.Explorer.LastSteps(ctx, id, since)
	if id == r.instance {
		maps.DeleteFunc(steps, func(name string, _ ports.StepHistory) bool { return !r.kept[name] })
	}
	return steps, err
}

// journalOf makes the journal of the attempt before it exists, for a plan.
func (f *From) journalOf(ctx context.Context, repository ports.JobRepository, history map[string]ports.StepHistory) (*journal, error) {
	rows := make([]ports.JournalRow, len(f.rows))
	for i, row := range f.rows {
		rows[i] = ports.JournalRow{FlowVisit: row, Execution: f.after}
	}
	return journalOf(ctx, repository, rows, history)
}

// keeper makes the rows of a From.
type keeper struct {
	job     *model.Job
	journal *journal
	element string
	from    *From
}

func (k *keeper) refuse(cause FromCause) *FromError {
	return &FromError{Job: k.job.Name, Element: k.element, Cause: cause, Known: k.namesIn(k.job.Flow), Reached: k.reachedIn(k.job.Flow, "", allAttempts())}
}

func (k *keeper) keep() error {
	path := pathTo(k.job.Flow, k.element)
	switch {
	case path != nil:
		return k.keepTo(k.job.Flow, "", k.journal.log(k.job.Flow, "", allAttempts()), path)
	case pathTo(k.job.Finally, k.element) != nil:
		return k.refuse(FromFinally)
	}
	return k.refuse(FromUnknown)
}

// branchPath is an element on the path to another one, and the branch that leads there.
type branchPath struct {
	at     model.Element
	branch int
}

// pathTo returns the elements around the named one, which is the last; nil if there is none. A group
// ends the path even if the element is inside it.
func pathTo(flow model.Flow, name string) []branchPath {
	for _, at := range flow.Elements {
		if record, _ := recordOf(at); at.ElementName() == name || record == name {
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

// namesIn returns the names of the elements of a flow, including nested ones.
func (k *keeper) namesIn(flow model.Flow) []string {
	var names []string
	for _, at := range flow.Elements {
		names = append(names, at.ElementName())
		for _, inner := range model.Flows(at) {
			names = append(names, k.namesIn(inner)...)
		}
	}
	return names
}

// reachedIn returns the names of the elements in the log of a flow, including nested ones.
func (k *keeper) reachedIn(flow model.Flow, id string, within attempts) []string {
	entries := k.journal.log(flow, id, within).entries
	var names []string
	for _, at := range flow.Elements {
		i := placeOf(entries, at)
		if i < 0 {
			continue
		}
		e := entries[i]
		names = append(names, at.ElementName())
		if _, isGroup := at.(*model.AtomicElement); isGroup || !isVisit(e.Kind) {
			continue
		}
		for branch, inner := range model.Flows(at) {
			names = append(names, k.reachedIn(inner, e.inner.Inner(branch), e.inside)...)
		}
	}
	return names
}

// placeOf returns the index of the last visit of an element, or of the restart point of an attempt that
// died before it; -1 means that no attempt has reached it.
func placeOf(entries []entry, at model.Element) int {
	return slices.IndexFunc(entries, func(e entry) bool {
		return e.Element == at.ElementName() && (isVisit(e.Kind) || e.Kind == ports.VisitJump && e.Target == e.Element)
	})
}

// keepTo keeps the part of a log before the path to the element. id names the log in the attempt.
func (k *keeper) keepTo(flow model.Flow, id string, l log, path []branchPath) error {
	at := path[0].at
	i := placeOf(l.entries, at)
	if i < 0 || len(path) > 1 && !isVisit(l.entries[i].Kind) {
		return k.refuse(FromUnreached)
	}
	for _, e := range l.entries[:i] {
		k.keepEntry(flow, id, e)
	}
	e := l.entries[i]
	v := core.Visit{Flow: id, Ordinal: e.Ordinal, Element: at.ElementName()}
	if len(path) == 1 { // a log begins with a visit of its first element
		v.Ordinal = max(v.Ordinal, 2)
		k.add(ports.FlowVisit{Visit: v, Kind: ports.VisitJump, Target: at.ElementName()})
		return nil
	}
	if flow, is := at.(*model.FlowElement); is && flow.AsStep { // rows inside do not prove a visit
		k.add(ports.FlowVisit{Visit: v, Kind: ports.VisitFlow})
	}
	for branch, inner := range model.Flows(at) {
		log := k.journal.log(inner, e.inner.Inner(branch), e.inside)
		if branch == path[0].branch {
			if err := k.keepTo(inner, v.Inner(branch), log, path[1:]); err != nil {
				return err
			}
			continue
		}
		if open := openIn(inner, log); open != "" {
			refused := k.refuse(FromBeside)
			refused.Split, refused.Open = at.ElementName(), open
			return refused
		}
		k.keepAll(inner, v.Inner(branch), log)
	}
	return nil
}

// openIn returns the element at which a branch ended other than COMPLETED, or has not ended; empty
// means that a restart would run nothing of the visited elements.
func openIn(flow model.Flow, l log) string {
	if len(l.entries) == 0 {
		return ""
	}
	e := l.entries[len(l.entries)-1]
	at, ok := flow.Find(e.Element)
	if !ok {
		return ""
	}
	if !isVisit(e.Kind) || len(e.outs) == 0 {
		return e.Element
	}
	out := e.outs[len(e.outs)-1]
	to, leads := model.Next(at.Edges(), out.Status, out.ExitCode)
	if !leads && out.Status == core.StatusCompleted || leads && (to.Kind == model.TargetElement || to.Kind == model.TargetEnd) {
		return ""
	}
	return e.Element
}

func (k *keeper) keepAll(flow model.Flow, id string, l log) {
	for _, e := range l.entries {
		k.keepEntry(flow, id, e)
	}
}

// keepEntry keeps a visit as it ended, unless the definition no longer has its element.
func (k *keeper) keepEntry(flow model.Flow, id string, e entry) {
	at, ok := flow.Find(e.Element)
	if !ok {
		return
	}
	row := ports.FlowVisit{Visit: core.Visit{Flow: id, Ordinal: e.Ordinal, Element: e.Element}, Kind: e.Kind, Verdict: e.Verdict, Target: e.Target}
	if _, isStep := recordOf(at); isStep && e.record != nil {
		row.Kind, row.Verdict, row.Target = ports.VisitPass, "", strconv.FormatInt(int64(e.record.ID), 10)
		k.from.kept[e.record.Name] = true
		k.add(row)
		return
	}
	if len(model.Flows(at)) == 0 || e.Kind == ports.VisitNoop {
		k.add(row)
		return
	}
	if len(e.outs) > 0 {
		row.Kind, row.Verdict, row.Target = ports.VisitFlow, verdictOf(e.outs[len(e.outs)-1]), ""
		if _, isGroup := at.(*model.AtomicElement); isGroup {
			row.Kind = ports.VisitGroup
		}
		k.add(row)
	}
	for branch, inner := range model.Flows(at) {
		k.keepAll(inner, row.Inner(branch), k.journal.log(inner, e.inner.Inner(branch), e.inside))
	}
}

func (k *keeper) add(row ports.FlowVisit) { k.from.rows = append(k.from.rows, row) }
