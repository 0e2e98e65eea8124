package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
)

// WorkView is the workers with the work that they hold, and the work that
// waits.
type WorkView struct {
	Leader  *taskports.Leader
	Workers []WorkerView
	// Processes are servers and commands that run executions.
	Processes []ProcessView
	// Types are those that wait, are executed, or that a live worker executes.
	Types []TypeView
	// Placements are at most MostPlacements of waiting work.
	Placements []PlacementView
	// More: processes hold more work than was read.
	More bool
}

// WorkerView is a worker with its work: Held pieces. Holds has the first 100.
type WorkerView struct {
	taskports.Worker
	Leads bool             `json:"leads"`
	Held  int              `json:"held"`
	Holds []taskports.Held `json:"holds"`
}

// ProcessView is a process that is not a worker.
type ProcessView struct {
	Name  string           `json:"name" doc:"HOST:PID"`
	Held  int              `json:"held"`
	Holds []taskports.Held `json:"holds" doc:"The first 100"`
}

// TypeView is a type of tasks.
type TypeView struct {
	Name string `json:"type"`
	// Waiting is at most taskports.MostWaiting.
	Waiting   int       `json:"waiting" doc:"At most 1,000 are counted"`
	Since     time.Time `json:"since,omitzero" doc:"When the oldest waiting one was submitted"`
	Executing int       `json:"executing"`
	Orphaned  int       `json:"orphaned" doc:"The lease of their worker is over, or it left before it began them: other workers take them"`
	Workers   int       `json:"workers" doc:"Number of live workers that execute it"`
	Waits     string    `json:"waits_for,omitempty" doc:"Why waiting tasks have no worker"`
}

// PlacementView is waiting work with one placement.
type PlacementView struct {
	On    string           `json:"on" doc:"The labels, or the name of the worker"`
	Kind  ports.PlacedKind `json:"kind" doc:"task, part or execution"`
	Type  string           `json:"type,omitempty" doc:"The type of the tasks"`
	Work  int              `json:"work" doc:"At most 1,000 are counted"`
	Since time.Time        `json:"since"`
	Waits string           `json:"waits_for" doc:"Why no worker has it"`
}

// InVain returns the types that wait and that no live worker executes.
func (v *WorkView) InVain() []string {
	names := []string{}
	for _, t := range v.Types {
		if t.Waiting > 0 && t.Workers == 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

const (
	// MostPlacements is the number of placements of a WorkView.
	MostPlacements = 200

	mostHolds = 100
)

// Work returns the workers and the waiting work.
func (s *TaskService) Work(ctx context.Context) (*WorkView, error) {
	found, err := s.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers := append([]taskports.Worker{}, found...)
	view := &WorkView{Workers: []WorkerView{}, Processes: []ProcessView{}, Types: []TypeView{}, Placements: []PlacementView{}}
	if view.Leader, err = s.Leader(ctx); err != nil {
		return nil, err
	}
	held, more, err := s.workers.Held(ctx)
	if err != nil {
		return nil, refusalOf(err)
	}
	view.More = more
	for i := range workers {
		workers[i].Busy = slotsOf(workers[i].Name, held)
	}
	leads := s.leader == nil || view.Leader != nil && view.Leader.Leading
	view.addHeld(workers, held)
	waiting, err := s.workers.WaitingTypes(ctx)
	if err != nil {
		return nil, refusalOf(err)
	}
	types := typesOf(waiting, workers, held)
	for _, places := range s.places {
		classes, err := places.Classes(ctx, MostPlacements)
		if err != nil {
			return nil, refusalOf(err)
		}
		for _, c := range classes {
			view.Placements = append(view.Placements, PlacementView{
				On: c.On.String(), Kind: c.Kind, Type: c.Type, Work: c.Work, Since: c.Since,
				Waits: taskports.WaitsFor(ports.Placed{Kind: c.Kind, On: c.On, Type: c.Type, State: ports.PlacePending}, workers, leads),
			})
			if t := types[c.Type]; t != nil {
				t.Orphaned += c.Orphaned
			}
		}
	}
	for _, t := range types {
		view.Types = append(view.Types, *t)
	}
	slices.SortFunc(view.Types, func(a, b TypeView) int { return cmp.Compare(a.Name, b.Name) })
	return view, nil
}

// slotsOf counts the slots that tasks and parts use: a parked execution that the
// worker continues is not known here.
func slotsOf(worker string, held []taskports.Held) (n int) {
	for i := range held {
		if h := &held[i]; h.Worker == worker && h.Kind != ports.PlacedExecution && !h.IsOrphaned() {
			n++
		}
	}
	return n
}

func (v *WorkView) addHeld(workers []taskports.Worker, held []taskports.Held) {
	at := map[string]int{}
	for _, w := range workers {
		at[w.Name] = len(v.Workers)
		v.Workers = append(v.Workers, WorkerView{Worker: w, Leads: v.Leader != nil && v.Leader.Leading && v.Leader.Holder == w.Name, Holds: []taskports.Held{}})
	}
	others := map[string]*ProcessView{}
	for _, h := range held {
		if i, is := at[h.Worker]; is {
			w := &v.Workers[i]
			if w.Held++; len(w.Holds) < mostHolds {
				w.Holds = append(w.Holds, h)
			}
			continue
		}
		name := cmp.Or(h.Process, h.Worker)
		p := others[name]
		if p == nil {
			p = &ProcessView{Name: name, Holds: []taskports.Held{}}
			others[name] = p
		}
		if p.Held++; len(p.Holds) < mostHolds {
			p.Holds = append(p.Holds, h)
		}
	}
	for _, p := range others {
		v.Processes = append(v.Processes, *p)
	}
	slices.SortFunc(v.Processes, func(a, b ProcessView) int { return cmp.Compare(a.Name, b.Name) })
}

func typesOf(waiting []taskports.WaitingType, workers []taskports.Worker, held []taskports.Held) map[string]*TypeView {
	types := map[string]*TypeView{}
	of := func(name string) *TypeView {
		if types[name] == nil {
			types[name] = &TypeView{Name: name}
		}
		return types[name]
	}
	for _, w := range workers {
		if w.State != taskports.WorkerActive {
			continue
		}
		for _, name := range w.Types {
			of(name).Workers++
		}
	}
	for _, t := range waiting {
		v := of(t.Name)
		if v.Waiting, v.Since = t.Tasks, t.Since; v.Workers == 0 {
			v.Waits = "no live worker executes tasks of this type"
		}
	}
	for i := range held {
		h := &held[i]
		if h.Kind != ports.PlacedTask {
			continue
		}
		if h.IsOrphaned() {
			of(h.Name).Orphaned++
		} else {
			of(h.Name).Executing++
		}
	}
	return types
}
