package conformance_test

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// partitioned is the step of all partitions. They all run at once, so that those that wait for a stop do not
// block each other.
func (r *lifeRun) partitioned(s *lifeStep) (model.Step, error) {
	var inner model.Step
	var err error
	if s.hasItems() {
		inner, err = r.chunkStep(s)
	} else {
		inner, err = r.tasklet(s)
	}
	if err != nil {
		return nil, err
	}
	workers := s.Workers
	if workers == 0 {
		workers = max(len(*s.Partitions), 1)
	}
	return step.NewPartitioned(step.PartitionConfig{
		Step: inner, Workers: workers, Promote: s.promotion(), Listeners: r.listeners(s), AllowStartIfComplete: s.allParts,
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) {
			return &gridPartitioner{r, s}, nil
		},
	})
}

type gridPartitioner struct {
	run  *lifeRun
	step *lifeStep
}

func (p *gridPartitioner) Partition(context.Context, *core.View) ([]core.Partition, error) {
	names := *p.step.Partitions
	if p.run.grid != nil {
		names = numbered(*p.run.grid)
	}
	var parts []core.Partition
	for i, name := range names {
		c := core.NewExecutionContext()
		if err := put(c, expanded(p.step.PartitionContext, name, i)); err != nil {
			return nil, err
		}
		parts = append(parts, core.Partition{Name: name, Index: i, Context: c})
	}
	return parts, nil
}

func (r *lifeRun) ran() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, name := range r.invoked {
		if strings.Contains(name, ":") {
			n++
		}
	}
	return n
}

// splitOp runs a partitioned step with partitions that end as `previous` says,
// and again: in a restart, or in a loop of the same execution.
func (r *lifeRun) splitOp(a *action) *seen {
	outcome := map[string]texts{}
	names := numbered(len(a.Previous))
	for i, name := range names {
		outcome[name] = texts{a.Previous[i], actCompleted}
		if _, err := parseAct(a.Previous[i]); err != nil { // no step can end like that
			outcome[name][0] = actFailed
		}
	}
	s := &lifeStep{Name: "split", Partitions: &names, PartitionOutcome: outcome, allParts: a.AllowStartIfComplete}
	again, first := a.Grid, len(a.Previous)
	loops := 1
	if first > 0 { // else there was nothing before
		r.grid = &first
		if !a.NewJobExecution {
			loops = 2
		}
	}
	var before int
	r.jobs[r.name] = func(context.Context) (*model.Job, error) {
		built, err := r.partitioned(s)
		if err != nil {
			return nil, err
		}
		visits := 0
		to := func(name string) model.Target { return model.Target{Kind: model.TargetElement, Name: name} }
		return &model.Job{Name: r.name, Restartable: true, Flow: model.Flow{Elements: []model.Element{
			&model.StepElement{Step: built, AllowStartIfComplete: a.AllowStartIfComplete, Next: []model.Transition{{Pattern: "*", Target: to("again")}}},
			&model.DecisionElement{Name: "again", Decide: func(context.Context, *core.View) (string, error) {
				if visits++; visits < loops {
					before, r.grid = r.ran(), again
					return "AGAIN", nil
				}
				return "OVER", nil
			}, Next: []model.Transition{{Pattern: "AGAIN", Target: to(s.Name)}, {Pattern: "*", Target: model.Target{Kind: model.TargetFail}}}},
		}}}, nil
	}
	seen := r.launchOp(&action{Op: "launch"})
	if a.NewJobExecution && first > 0 {
		require.NotNil(r.t, seen.exec, "the first execution: %v", seen.refusal)
		for i, name := range names {
			if _, err := parseAct(a.Previous[i]); err != nil {
				r.forceStep(seen.exec.ID, core.PartName(s.Name, name), a.Previous[i])
			}
		}
		before, r.grid = r.ran(), again
		seen = r.restartOp(&action{Op: "restart"})
	}
	require.Equal(r.t, len(a.Previous), before, "the partitions that ran at first")
	seen.facts["to_run"] = r.ran() - before
	return seen
}

// aggregateOp runs a partitioned step with partitions that end as the action says, and reads the record of
// the whole step.
func (r *lifeRun) aggregateOp(a *action) *seen {
	n := max(len(a.Counters), len(a.Statuses), len(a.ExitCodes))
	names := numbered(n)
	s := &lifeStep{Name: "aggregate", Partitions: &names}
	scripts := map[string]*script{}
	for i, name := range names {
		outcome := actCompleted
		if i < len(a.Statuses) {
			outcome = a.Statuses[i]
		}
		if i < len(a.ExitCodes) {
			outcome += ":" + a.ExitCodes[i]
		}
		one, err := newScript([]string{outcome})
		require.NoError(r.t, err)
		scripts[name] = one
	}
	inner, err := step.NewTasklet(step.TaskletConfig{
		Name: s.Name, Database: r.engine.Database, Attr: tx.Attr{},
		Assemble: func(_ context.Context, run *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
				if i := run.Data.Part.Index; i < len(a.Counters) {
					c.Counters = countersOf(a.Counters[i])
				}
				what, _ := scripts[run.Data.Part.Name].take()
				return stage{repository: r.engine.Repository.Ports()}.play(ctx, c, what)
			}), nil
		},
	})
	require.NoError(r.t, err)
	whole, err := step.NewPartitioned(step.PartitionConfig{
		Step: inner, Workers: max(n, 1),
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return &gridPartitioner{r, s}, nil },
	})
	require.NoError(r.t, err)
	r.jobs[r.name] = func(context.Context) (*model.Job, error) {
		return &model.Job{Name: r.name, Restartable: true, Flow: model.Flow{Elements: []model.Element{&model.StepElement{Step: whole}}}}, nil
	}
	seen := r.launchOp(&action{Op: "launch"})
	if record, ran := newest(seen.steps, s.Name); ran {
		c := record.Counters
		seen.counters = []int64{c.Commit, c.Filter, c.ProcessSkip, c.Read, c.ReadSkip, c.Rollback, c.Write, c.WriteSkip}
	}
	return seen
}

func countersOf(list []int64) core.Counters {
	var c core.Counters
	for i, to := range []*int64{&c.Commit, &c.Filter, &c.ProcessSkip, &c.Read, &c.ReadSkip, &c.Rollback, &c.Write, &c.WriteSkip} {
		if i < len(list) {
			*to = list[i]
		}
	}
	return c
}

func (r *lifeRun) launchPartitionsOp(a *action) *seen {
	n := 2
	if a.Grid != nil {
		n = *a.Grid
	}
	names := numbered(n)
	s := &lifeStep{Name: "partitioned", Partitions: &names}
	built, err := r.partitioned(s)
	require.NoError(r.t, err)
	j := &model.Job{Name: r.name, Restartable: true, Flow: model.Flow{Elements: []model.Element{&model.StepElement{Step: built}}}}
	ctx, cancel := context.WithTimeout(r.t.Context(), flowTime)
	defer cancel()
	exec, err := r.pool(a).Run(ctx, j, core.Parameters{}, nil)
	if err != nil {
		return r.look(0, err)
	}
	r.current = exec.ID
	seen := r.look(exec.ID, nil)
	seen.waited, seen.facts["ran"] = true, r.ran()
	return seen
}
