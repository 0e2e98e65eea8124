package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type workersView struct {
	Leader     leaderView
	Workers    []workerLine
	Processes  []processLine
	Types      []typeLine
	Placements []placementLine
	Deciders   []string
	More       bool
}

type workerLine struct {
	processLine
	Leads     bool
	State     statusView
	Labels    string
	Types     string
	Deciders  string
	Parts     bool
	Slots     string
	Version   string
	Started   moment
	Heartbeat moment
	Ago       string
	Lease     string
}

// processLine is a process with its work.
type processLine struct {
	Name  string
	Held  string
	Holds []heldLine
	// More: there are others than Holds.
	More string
}

type heldLine struct {
	link
	Kind  string
	Name  string
	State statusView
	Since moment
	Lease string
}

type typeLine struct {
	link
	Waiting, Executing, Orphaned, Workers string
	Since                                 moment
	Oldest, Waits                         string
}

type placementLine struct {
	On, Kind, Type, Work, Waits string
	Since                       moment
}

// leaderView is the worker that leads.
type leaderView struct {
	Name  string
	Epoch int64
	Since moment
	Lease string
	// None says that no worker leads, and a former one did.
	None string
}

func leaderNow(v *visit) (leaderView, error) {
	l, err := v.Tasks.Leader(v.r.Context())
	return leaderOf(v, l), err
}

func leaderOf(v *visit, l *taskports.Leader) leaderView {
	switch {
	case l == nil:
		return leaderView{}
	case !l.Leading:
		return leaderView{None: wording.Leader(l)}
	}
	return leaderView{Name: clip(l.Holder, shortText), Epoch: l.Epoch, Since: v.moment(l.Since), Lease: humanize.Seconds(l.LeaseLeft)}
}

func (v ofWork) workers() (*page, error) {
	ctx := v.r.Context()
	work, err := v.Tasks.Work(ctx)
	if err != nil {
		return nil, err
	}
	deciders, err := v.Tasks.WaitingDeciders(ctx)
	if err != nil {
		return nil, err
	}
	view := workersView{Leader: leaderOf(v.visit, work.Leader), More: work.More}
	for _, d := range deciders {
		view.Deciders = append(view.Deciders, fmt.Sprintf("%s (%s)", clip(d.Name, shortText), humanize.Plural(d.Tasks, "task")))
	}
	active := 0
	for i := range work.Workers {
		if work.Workers[i].State == taskports.WorkerActive {
			active++
		}
		if len(view.Workers) < longList {
			view.Workers = append(view.Workers, v.workerLine(&work.Workers[i]))
		}
	}
	for _, p := range work.Processes {
		view.Processes = append(view.Processes, v.processLine(p.Name, p.Held, p.Holds))
	}
	for i := range work.Types {
		view.Types = append(view.Types, v.typeLine(&work.Types[i]))
	}
	for _, p := range work.Placements {
		view.Placements = append(view.Placements, placementLine{clip(p.On, lineText), string(p.Kind), clip(p.Type, shortText), wording.AtMost(p.Work, ports.MostPlaced), clip(p.Waits, lineText), v.moment(p.Since)})
	}
	heading := humanize.Plural(active, "worker") + " alive"
	if active == 0 {
		heading = "No worker is alive"
	}
	return &page{Title: "Workers", Heading: heading, Body: view, Live: "worker,task,execution"}, nil
}

func (v ofWork) workerLine(w *runtime.WorkerView) workerLine {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(w.Labels)) {
		labels = append(labels, name+"="+w.Labels[name])
	}
	l := workerLine{
		processLine: v.processLine(w.Name, w.Held, w.Holds), Leads: w.Leads, State: stateView(w.State), Labels: clip(strings.Join(labels, ", "), lineText), Types: clip(strings.Join(w.Types, ", "), lineText),
		Deciders: clip(strings.Join(w.Deciders, ", "), lineText), Parts: w.Parts, Slots: fmt.Sprintf("%d of %d", w.Busy, w.Capacity), Version: clip(w.Version, shortText),
		Started: v.moment(w.StartedAt), Heartbeat: v.moment(w.HeartbeatAt), Ago: humanize.Duration(max(0, v.Now().Sub(w.HeartbeatAt))) + " ago",
	}
	if w.State == taskports.WorkerActive || w.State == taskports.WorkerDraining {
		l.Lease = humanize.Seconds(w.LeaseLeft)
	}
	return l
}

func (v ofWork) processLine(name string, held int, holds []taskports.Held) processLine {
	const shown = 50
	l := processLine{Name: clip(name, shortText), Held: humanize.Count(held)}
	for i := range holds[:min(len(holds), shown)] {
		h := &holds[i]
		line := heldLine{Kind: string(h.Kind), Name: clip(h.Name, shortText), State: stateView(h.State), Since: v.moment(h.Since), Lease: wording.LeaseLeft(h), link: v.executionLink(h.Execution)}
		switch h.Kind {
		case ports.PlacedTask:
			line.link = v.taskLink(task.ID(h.ID))
		case ports.PlacedPart:
			line.Href += "/parts"
		case ports.PlacedExecution:
		}
		l.Holds = append(l.Holds, line)
	}
	if n := held - len(l.Holds); n > 0 {
		l.More = humanize.Count(n) + " more"
	}
	return l
}

func (v ofWork) typeLine(t *runtime.TypeView) typeLine {
	l := typeLine{
		link: link{clip(t.Name, shortText), v.Base + "/tasks?" + url.Values{"type": {t.Name}}.Encode()}, Waiting: wording.AtMost(t.Waiting, taskports.MostWaiting),
		Executing: humanize.Count(t.Executing), Orphaned: humanize.Count(t.Orphaned), Workers: humanize.Count(t.Workers), Since: v.moment(t.Since), Waits: t.Waits,
	}
	if !t.Since.IsZero() {
		l.Oldest = humanize.Duration(max(0, v.Now().Sub(t.Since)))
	}
	return l
}
