package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Workers lists the workers that share the database.
type Workers interface {
	// PartWorkers returns the number of live workers that take parts and parked
	// executions.
	PartWorkers(ctx context.Context) (int, error)
	// LoadOf counts the slots that tasks use.
	Workers(ctx context.Context) ([]taskports.Worker, error)
	LoadOf(ctx context.Context, loads map[string]int) error
	Leader(ctx context.Context) (*taskports.Leader, error)
	// WaitingTypes returns the types of waiting tasks.
	WaitingTypes(ctx context.Context) ([]taskports.WaitingType, error)
}

// Waiting describes a parked execution's open work, and its workers.
type Waiting struct {
	ports.OpenWork
	// Engine delivers the work.
	Engine string `json:"engine,omitempty"`
	// Workers is how many live ones run parts and continue executions; nil if
	// unknown. A dead one counts until its lease expires.
	Workers *int `json:"workers,omitempty"`
}

// NoWorker means that no live worker continues it.
func (w *Waiting) NoWorker() bool { return w != nil && w.Workers != nil && *w.Workers == 0 }

// StepTasks is the group of tasks that a step has submitted.
type StepTasks struct {
	Group  int64          `json:"group"`
	States map[string]int `json:"states"`
}

// PlacedWork is parts or child jobs with the same placement, state and reason
// (rule PL5).
type PlacedWork struct {
	On    core.Placement `json:"on"`
	State string         `json:"state"`
	Waits string         `json:"waits"`
	Count int            `json:"count"`
	Names []string       `json:"names"`
	// Unfit: no live worker may do it.
	Unfit bool `json:"unfit,omitempty"`
}

type workload struct {
	records workRecords
	workers Workers // may be nil
	engine  string
}

type workRecords interface {
	StepWork(ctx context.Context, ids ...core.JobExecutionID) (ports.StepWork, error)
	PlacedOf(ctx context.Context, ids ...core.JobExecutionID) ([]ports.Placed, error)
	LoadOf(ctx context.Context, loads map[string]int) error
}

func (s *workload) waiting(ctx context.Context, judged []ports.JudgedExecution) (map[core.JobExecutionID]*Waiting, error) {
	var workers *int
	found := map[core.JobExecutionID]*Waiting{}
	for i := range judged {
		e := &judged[i].Execution
		if !isParked(e) {
			continue
		}
		if workers == nil && s.workers != nil {
			n, err := s.workers.PartWorkers(ctx)
			if err != nil {
				return nil, err
			}
			workers = &n
		}
		found[e.ID] = &Waiting{OpenWork: judged[i].Newest.Open, Engine: s.engine, Workers: workers}
	}
	return found, nil
}

func (s *workload) stepWork(ctx context.Context, steps map[core.JobExecutionID][]core.StepExecution) (ports.StepWork, error) {
	var ids []core.JobExecutionID
	for id, list := range steps {
		for i := range list {
			if submits(&list[i]) {
				ids = append(ids, id)
				break
			}
		}
	}
	if len(ids) == 0 {
		return ports.StepWork{}, nil
	}
	work, err := s.records.StepWork(ctx, ids...)
	if err != nil {
		return work, fmt.Errorf("read the work that steps wait for: %w", err)
	}
	return work, nil
}

func (s *workload) placed(ctx context.Context, judged []ports.JudgedExecution) (map[core.JobExecutionID][]PlacedWork, error) {
	var ids []core.JobExecutionID
	for i := range judged {
		if e := &judged[i].Execution; !e.Status.IsOver() {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 || s.workers == nil {
		return nil, nil
	}
	waiting, err := s.records.PlacedOf(ctx, ids...)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	workers, leads, err := s.loadedWorkers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[core.JobExecutionID][]PlacedWork{}
	for _, w := range waiting {
		of := w.Execution
		if !slices.Contains(ids, of) || w.Parent != 0 && slices.Contains(ids, w.Parent) {
			of = w.Parent
		}
		all[of] = addPlaced(all[of], w, taskports.WaitsFor(w, workers, leads), !slices.ContainsFunc(workers, func(x taskports.Worker) bool { return x.MayDo(w) }))
	}
	return all, nil
}

// placedIn is the placed work of one execution. It asks only if the execution, a child job or a part of its steps may
// wait for a worker.
func (s *workload) placedIn(ctx context.Context, e *ports.JudgedExecution, steps *stepRecords) ([]PlacedWork, error) {
	if !isParked(&e.Execution) && e.Newest.Open.Children == 0 && !steps.hasOpenParts() {
		return nil, nil
	}
	placed, err := s.placed(ctx, []ports.JudgedExecution{*e})
	return placed[e.Execution.ID], err
}

func (s *workload) loadedWorkers(ctx context.Context) ([]taskports.Worker, bool, error) {
	workers, err := s.workers.Workers(ctx)
	if err != nil {
		return nil, false, err
	}
	loads := map[string]int{}
	for _, of := range []interface {
		LoadOf(ctx context.Context, loads map[string]int) error
	}{s.workers, s.records} {
		if err := of.LoadOf(ctx, loads); err != nil {
			return nil, false, err
		}
	}
	for i := range workers {
		workers[i].Busy = loads[workers[i].Name]
	}
	leader, err := s.workers.Leader(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read the leader: %w", err)
	}
	return workers, leader != nil && leader.Leading, nil
}

const mostNames = 5

func addPlaced(list []PlacedWork, w ports.Placed, waits string, unfit bool) []PlacedWork {
	i := slices.IndexFunc(list, func(p PlacedWork) bool {
		return p.On.Stored() == w.On.Stored() && p.State == w.State && p.Waits == waits
	})
	if i < 0 {
		list = append(list, PlacedWork{On: w.On, State: w.State, Waits: waits, Unfit: unfit})
		i = len(list) - 1
	}
	list[i].Count++
	if len(list[i].Names) < mostNames {
		list[i].Names = append(list[i].Names, w.Name)
	}
	return list
}

func submits(step *core.StepExecution) bool {
	if step.Context == nil {
		return false
	}
	_, tasks := step.Context.Get(ports.TasksKey)
	_, child := step.Context.Get(ports.ChildKey)
	return tasks || child && !step.Status.IsOver()
}

// nil: none, or a later attempt has taken them.
func tasksOf(step *core.StepExecution, work ports.StepWork) *StepTasks {
	g, is := work.Groups[step.ID]
	if !is {
		return nil
	}
	return &StepTasks{g.Group, g.States}
}

func childOf(step *core.StepExecution, work ports.StepWork) (id core.JobExecutionID, status core.Status) {
	for _, c := range work.Children {
		if c.Parent == step.JobExecutionID && c.Call == step.First {
			id, status = c.Execution, c.Status
		}
	}
	return id, status
}

func isParked(e *core.JobExecution) bool { return e.Owner == core.Owner{} && !e.Status.IsOver() }
