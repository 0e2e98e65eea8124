package operator

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Workers lists the workers that share the database: a tasks.Repository.
type Workers interface {
	// PartWorkers returns the number of live workers that take parts of steps and continue parked
	// executions.
	PartWorkers(ctx context.Context) (int, error)
	// Workers returns all of them, LoadOf counts the slots that tasks use, and Leader returns the
	// leader.
	Workers(ctx context.Context) ([]taskports.Worker, error)
	LoadOf(ctx context.Context, loads map[string]int) error
	Leader(ctx context.Context) (*taskports.Leader, error)
}

// Waiting describes the work that a parked execution waits for, and its workers.
type Waiting struct {
	core.OpenWork
	// Engine is the engine that delivers the work to workers.
	Engine string `json:"engine,omitempty"`
	// Workers is the number of live workers that run parts and continue executions; nil if unknown.
	// A dead one counts until its lease expires. Without one the execution waits for another, even
	// if no work is open.
	Workers *int `json:"workers,omitempty"`
}

// NoWorker reports whether no live worker continues the execution.
func (w *Waiting) NoWorker() bool { return w != nil && w.Workers != nil && *w.Workers == 0 }

// waiting returns the open work of each parked execution. It queries the database once, or not at
// all if none is parked.
func (s *Service) waiting(ctx context.Context, judged []ports.JudgedExecution) (map[core.JobExecutionID]*Waiting, error) {
	var workers *int
	parked := map[core.JobExecutionID]*Waiting{}
	for i := range judged {
		e := &judged[i].Execution
		if !isParked(e) {
			continue
		}
		if workers == nil && s.config.Workers != nil {
			n, err := s.config.Workers.PartWorkers(ctx)
			if err != nil {
				return nil, err
			}
			workers = &n
		}
		parked[e.ID] = &Waiting{OpenWork: judged[i].Newest.Open, Engine: s.config.Engine, Workers: workers}
	}
	return parked, nil
}

// StepTasks is the group of tasks that a step has submitted.
type StepTasks struct {
	Group int64 `json:"group"`
	// States counts the tasks by state.
	States map[string]int `json:"states"`
}

// stepWork returns the work that steps have submitted, if the records show that one did.
func (s *Service) stepWork(ctx context.Context, steps map[core.JobExecutionID][]core.StepExecution) (core.StepWork, error) {
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
		return core.StepWork{}, nil
	}
	work, err := s.config.Repository.StepWork(ctx, ids...)
	if err != nil {
		return work, fmt.Errorf("read what steps wait for: %w", err)
	}
	return work, nil
}

func submits(step *core.StepExecution) bool {
	if step.Context == nil {
		return false
	}
	_, tasks := step.Context.Get(core.TasksKey)
	_, child := step.Context.Get(core.ChildKey)
	return tasks || child && !step.Status.IsOver()
}

// tasksOf returns the tasks of a step; nil if it has none, or a later attempt has taken them.
func tasksOf(step *core.StepExecution, work core.StepWork) *StepTasks {
	g, is := work.Groups[step.ID]
	if !is {
		return nil
	}
	return &StepTasks{g.Group, g.States}
}

// childOf returns the execution of the job that a step waits for, or 0.
func childOf(step *core.StepExecution, work core.StepWork) (id core.JobExecutionID, status core.Status) {
	for _, c := range work.Children {
		if c.Parent == step.JobExecutionID && c.Call == step.First {
			id, status = c.Execution, c.Status
		}
	}
	return id, status
}
