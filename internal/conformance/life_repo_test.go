package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type repoThrow struct {
	Call string `yaml:"call"`
	When string `yaml:"when"`
}

const (
	throwAlways        = "always"
	throwInTransaction = "in_transaction"
)

const (
	callStart      = "start_step"
	callEnd        = "end_step"
	callCheckpoint = "checkpoint"
	callContext    = "save_step_context"
	callStores     = "end_step_with_context"
)

func repoCalls() map[string][]string {
	return map[string][]string{
		callStart: {callStart}, callEnd: {callEnd}, callCheckpoint: {callCheckpoint}, callContext: {callContext},
		"add": {callStart}, "update": {callCheckpoint, callEnd}, "update_execution_context": {callCheckpoint, callContext},
		// The context of a step is stored with each chunk, when its tasklet saves it, and with the step's
		// end.
		"update_step_context": {callCheckpoint, callContext, callStores},
	}
}

func (t *repoThrow) validate() error {
	if t == nil {
		return nil
	}
	if _, known := repoCalls()[t.Call]; !known {
		return fmt.Errorf("repo_throws: call %q is unknown (known: %v)", t.Call, sortedKeys(repoCalls()))
	}
	return oneOf("repo_throws: when", []string{t.When}, throwAlways, throwInTransaction)
}

var errRepository = errors.New("the scenario says that the repository throws")

type throwingRepository struct {
	ports.Transitions
	ports.CheckpointStore
	run *lifeRun
}

func (r *lifeRun) repository() ports.Repository {
	all := r.engine.Repository.Ports()
	throwing := &throwingRepository{all.Transitions, all.CheckpointStore, r}
	all.Transitions, all.CheckpointStore = throwing, throwing
	return all
}

func (t *throwingRepository) fails(ctx context.Context, call, step string, id core.StepExecutionID) error {
	for _, s := range *t.run.spec().Steps {
		throw := s.RepoThrows
		if throw == nil || !slices.Contains(repoCalls()[throw.Call], call) || (s.Name != step && t.run.stepID(s.Name) != id) {
			continue
		}
		if _, inside := tx.From(ctx, t.run.engine.Database.Name()); inside || throw.When == throwAlways {
			return fmt.Errorf("%s: %w", call, errRepository)
		}
	}
	return nil
}

func (t *throwingRepository) StartStep(ctx context.Context, job ports.JobRef, start ports.StepStart) (*core.StepExecution, error) {
	if err := t.fails(ctx, callStart, start.Name, 0); err != nil {
		return nil, err
	}
	s, err := t.Transitions.StartStep(ctx, job, start)
	if err == nil {
		t.run.noteStep(start.Name, s.ID)
	}
	return s, err
}

func (t *throwingRepository) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	if err := t.fails(ctx, callEnd, "", ref.ID); err != nil {
		return core.Rejected, err
	}
	if change.Context != nil {
		if err := t.fails(ctx, callStores, "", ref.ID); err != nil {
			return core.Rejected, err
		}
	}
	return t.Transitions.EndStep(ctx, ref, change)
}

func (t *throwingRepository) Checkpoint(ctx context.Context, ref ports.StepRef, c ports.Checkpoint) error {
	if err := t.fails(ctx, callCheckpoint, "", ref.ID); err != nil {
		return err
	}
	return t.CheckpointStore.Checkpoint(ctx, ref, c)
}

func (t *throwingRepository) SaveStepContext(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	if err := t.fails(ctx, callContext, "", ref.ID); err != nil {
		return err
	}
	return t.Transitions.SaveStepContext(ctx, ref, c)
}

func (r *lifeRun) noteStep(name string, id core.StepExecutionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stepIDs[name] = id
}

func (r *lifeRun) stepID(name string) core.StepExecutionID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, known := r.stepIDs[name]; known {
		return id
	}
	return -1
}

func (r *lifeRun) updateStepOp(a *action) *seen {
	r.t.Helper()
	id, ctx := r.target(a), r.t.Context()
	steps, err := r.engine.Repository.Steps(ctx, id)
	require.NoError(r.t, err)
	at := slices.IndexFunc(steps, func(s core.StepExecution) bool { return a.Step == "" || s.Name == a.Step })
	require.GreaterOrEqual(r.t, at, 0, "execution %d has no step %s", id, a.Step)
	s := steps[at]
	err = tx.NewManager(r.engine.Database).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		return r.engine.Repository.Checkpoint(ctx, ports.StepRef{ID: s.ID, Owner: s.Owner, Epoch: s.Epoch}, ports.Checkpoint{
			Counters: s.Counters, Position: s.Position, Context: s.Context,
		})
	})
	found := r.look(id, nil)
	found.failure = errors.Join(found.failure, err)
	return found
}

func (r *lifeRun) validateConfigOp(*action) *seen {
	s := r.look(0, nil)
	s.failure = r.validJob()
	return s
}

func (r *lifeRun) terminated(ctx context.Context, run *model.StepRun) error {
	if _, err := r.engine.Repository.RequestStop(ctx, run.Data.Job.ID, ports.By{Actor: "test"}); err != nil {
		return err
	}
	run.Services.Stop.Request()
	return nil
}

func (r *lifeRun) attempts(d *differences, e *lifeExpectation, s *seen) {
	if e.ManagerExecutions == nil && e.PartitionExecutions == nil {
		return
	}
	d.that(s.exec != nil, "manager_executions", "there is no execution")
	if s.exec == nil {
		return
	}
	parted := map[string]bool{}
	for _, step := range *r.spec().Steps {
		parted[step.Name] = step.Partitions != nil
	}
	list, err := r.engine.Repository.Executions(r.t.Context(), ports.ExecutionFilter{Instance: s.exec.InstanceID, Limit: 1000})
	require.NoError(r.t, err)
	managers, parts := 0, 0
	for _, exec := range list {
		steps, err := r.engine.Repository.Steps(r.t.Context(), exec.ID)
		require.NoError(r.t, err)
		for _, step := range steps {
			if name, _, is := strings.Cut(step.Name, ":"); is && parted[name] {
				parts++
			} else if parted[step.Name] {
				managers++
			}
		}
	}
	d.text("manager_executions", e.ManagerExecutions, managers)
	d.text("partition_executions", e.PartitionExecutions, parts)
}
