package compile

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (c *compiler) flow(list *tree.List) (model.Flow, error) {
	var flow model.Flow
	var errs []error
	for _, e := range list.Elements {
		compiled, err := c.element(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", e.Kind.Word(), e.Name, err))
			continue
		}
		flow.Elements = append(flow.Elements, compiled)
	}
	return flow, errors.Join(errs...)
}

func (c *compiler) flows(lists []*tree.List) ([]model.Flow, error) {
	var flows []model.Flow
	var errs []error
	for _, list := range lists {
		flow, err := c.flow(list)
		flows, errs = append(flows, flow), append(errs, err)
	}
	return flows, errors.Join(errs...)
}

func (c *compiler) element(e *tree.Element) (model.Element, error) {
	when := compiledCondition(e.When, c.file)
	remote, distributed := c.splitOnWorkers(e), c.deps.Distributed
	c.deps.Distributed = distributed && !remote // a branch on workers runs entirely on its worker
	inner, err := c.flows(e.Lists)
	c.deps.Distributed = distributed
	if err != nil {
		return nil, err
	}
	switch e.Kind {
	case language.SplitKind:
		split := &model.SplitElement{Name: e.Name, When: when, Branches: inner, OnWorkers: remote, On: e.On, Next: e.Edges}
		if n := e.Model.Split.Parallel; n != nil {
			split.Workers = *n
		}
		return split, nil
	case language.FlowKind:
		return &model.FlowElement{Name: e.Name, When: when, Flow: inner[0], Next: e.Edges}, nil
	case language.AtomicKind:
		return c.group(e, when, inner[0])
	case language.DecideKind:
		return &model.DecisionElement{Name: e.Name, When: when, Decide: c.decide(e), Next: e.Edges}, nil
	case language.JobKind:
		made, err := c.child(e.Step)
		return &model.StepElement{Step: made, When: when, Next: e.Edges, StartLimit: e.Model.Job.StartLimit}, err
	case language.StepKind:
	}
	made, err := c.step(e.Step)
	m := e.Step.Model
	return &model.StepElement{Step: made, When: when, Next: e.Edges, AllowStartIfComplete: m.AllowStartIfComplete, StartLimit: m.StartLimit}, err
}

func (c *compiler) step(s *tree.Step) (model.Step, error) {
	made, err := c.work(s)
	if err != nil || s.Partitioner == nil {
		return made, err
	}
	db, err := c.deps.Provider.Database(c.file.DatabaseOf(s))
	if err != nil {
		return nil, err
	}
	config := step.PartitionConfig{
		Step: made, Partitioner: c.builder(s.Name, s, s.Partitioner).partitioner, Database: db,
		Expect: compiledCondition(s.Expect, c.file), Promote: s.Promote, OnWorkers: s.Model.Partition.Remote, On: onOfPart(s.On),
	}
	if workers := s.Model.Partition.Workers; workers != nil {
		config.Workers = int(*workers)
	}
	return step.NewPartitioned(config)
}

func (c *compiler) work(s *tree.Step) (model.Step, error) {
	db, err := c.deps.Provider.Database(c.file.DatabaseOf(s))
	if err != nil {
		return nil, err
	}
	a := c.builder(s.Name, s, append(s.Work(), s.Listeners...)...)
	var expect *model.Condition
	var promote *model.Promotion
	if s.Partitioner == nil {
		expect, promote = compiledCondition(s.Expect, c.file), s.Promote
	}
	listeners := a.stepListeners
	if len(s.Listeners) == 0 {
		listeners = nil
	}
	if s.Tasklet != nil {
		retry, err := c.retry(s)
		if err != nil {
			return nil, err
		}
		return step.NewTasklet(step.TaskletConfig{
			Name: s.Name, Database: db, Attr: c.file.AttrOf(s), Retry: retry, Timeout: language.ValueOr0(s.Timeout), Assemble: a.tasklet,
			Listeners: listeners, Expect: expect, Promote: promote,
		})
	}
	if s.Tasks != nil {
		return c.tasks(s, a, step.TasksConfig{Expect: expect, Promote: promote, Listeners: listeners})
	}
	config := chunk.Config{
		Name: s.Name, Size: *s.Chunk.Size, Database: db, Attr: c.file.AttrOf(s), Timeout: language.ValueOr0(s.Timeout), Assemble: a.parts,
		Listeners: listeners, Expect: expect, Promote: promote,
	}
	config.CreatesTargets = createsTargets(s)
	if hasTargets(s) {
		config.Targets = a.targets
	}
	if writesTogether(s) {
		config.Together, config.JoinWriters = a.togetherPaths, a.joinWriters
	}
	if err := c.setRetrySkip(s, &config); err != nil {
		return nil, err
	}
	config.ProcessInTransaction = config.ProcessInTransaction || s.InTransaction() != nil
	if c.wrapParts != nil {
		config.Assemble = c.wrapParts(config.Assemble)
	}
	return chunk.New(config)
}

func (c *compiler) child(s *tree.Step) (model.Step, error) {
	if s.Child.File == nil {
		return nil, errors.New(s.Child.Missing) // reported by checkDatabases
	}
	compiled, err := Job(s.Child.File, c.deps)
	if err != nil {
		return nil, err
	}
	return step.NewJob(step.JobConfig{Name: s.Name, Job: compiled, OnWorkers: c.onWorkers(s.Child), On: s.Child.On, Params: func(_ context.Context, view *core.View) (core.Parameters, error) {
		return childParameters(c.file, s.Child, view)
	}, Confinement: func(ctx context.Context, view *core.View) *core.Confinement {
		return childConfinement(ctx, c.file, s.Child, view)
	}})
}

func (c *compiler) decide(e *tree.Element) func(ctx context.Context, view *core.View) (string, error) {
	if e.Decider != nil {
		a := c.builder(e.Name, nil, e.Decider)
		return func(ctx context.Context, view *core.View) (verdict string, err error) {
			decider, err := one[core.Decider](ctx, a, view, e.Decider)
			if err != nil {
				return "", err
			}
			if closer, ok := decider.(item.Closer); ok {
				defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
			}
			return decider.Decide(ctx, view)
		}
	}
	type choice struct {
		when    *model.Condition
		verdict string
	}
	choices := make([]choice, len(e.Choices))
	for i, of := range e.Choices {
		choices[i] = choice{compiledCondition(of.When, c.file), of.Verdict}
	}
	return func(ctx context.Context, view *core.View) (string, error) {
		for _, of := range choices {
			if of.when == nil {
				return of.verdict, nil
			}
			if holds, err := of.when.Holds(ctx, view); err != nil || holds {
				return of.verdict, err
			}
		}
		return "", fmt.Errorf("none of the choices holds") // not reached: the last one has no condition
	}
}

func (c *compiler) group(e *tree.Element, when *model.Condition, inner model.Flow) (model.Element, error) {
	db, err := c.deps.Provider.Database(c.groupDatabase(e))
	if err != nil {
		return nil, err
	}
	manager, attr := tx.NewManager(db), c.file.GroupTransaction(e).Attr()
	return &model.AtomicElement{
		Name: e.Name, When: when, Flow: inner, Database: db.Name(), Next: e.Edges,
		Snapshot: db.Dialect() == tx.Postgres && attr.Isolation >= sql.LevelRepeatableRead,
		Do: func(ctx context.Context, fn func(ctx context.Context) error) error {
			return markUnknownOutcome(manager.Do(ctx, attr, fn))
		},
	}, nil
}

// markUnknownOutcome marks a failed COMMIT with an unknown effect (rule C10).
func markUnknownOutcome(err error) error {
	if errors.As(err, new(*tx.CommitError)) && !errors.Is(err, tx.ErrRolledBack) {
		return fmt.Errorf("%w: %w", ports.ErrUnknownOutcome, err)
	}
	return err
}

func (c *compiler) onWorkers(child *tree.Child) bool {
	switch child.Model.Remote {
	case language.RemoteTrue:
		return true
	case language.RemoteAuto:
		return c.deps.Distributed && child.File.LocalComponent() == nil
	}
	return false
}

func (c *compiler) splitOnWorkers(e *tree.Element) bool {
	if e.Kind != language.SplitKind {
		return false
	}
	switch e.Model.Split.Remote {
	case language.RemoteTrue:
		return true
	case language.RemoteAuto:
		if !c.deps.Distributed || e.LocalComponent() != nil {
			return false
		}
		for _, branch := range e.Lists {
			if inner, _ := branch.WaitsForWorkers(); inner != nil {
				return false
			}
		}
		return true
	}
	return false
}

func (c *compiler) tasks(s *tree.Step, a builder, config step.TasksConfig) (model.Step, error) {
	if c.deps.Tasks == nil {
		return nil, errors.New("this application cannot run a step of tasks")
	}
	config.On = s.On
	config.Name, config.Handler, config.Budget, config.Groups = s.Name, s.Tasks.Model.Handler, s.Tasks.Model.Budget.Limits(), c.deps.Tasks
	config.Key, config.After = s.Tasks.Model.Key, s.Tasks.Model.After
	config.Items = func(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error) {
		if s.Reader == nil {
			return payloads(c.file, s, bind.View(c.file, run.View()))
		}
		reader, err := one[item.Reader](ctx, a.forRun(run), run.View(), s.Reader)
		if err != nil {
			return nil, err
		}
		return readPayloads(ctx, reader, s.Reader.Out)
	}
	return step.NewTasks(config)
}

func onOfPart(p *core.Placement) func(part core.Partition) (*core.Placement, error) {
	if p == nil {
		return nil
	}
	return func(part core.Partition) (*core.Placement, error) {
		var missing error
		fill := func(text string) string {
			return language.PartHole.ReplaceAllStringFunc(text, func(hole string) string {
				name := language.PartHole.FindStringSubmatch(hole)[1]
				switch name {
				case "name":
					return part.Name
				case "index":
					return fmt.Sprint(part.Index)
				}
				if part.Context != nil {
					if x, has := part.Context.Get(name); has && x != nil {
						return template.Text(x)
					}
				}
				missing = fmt.Errorf("on: part %s has no value %s", part.Name, name)
				return ""
			})
		}
		filled := &core.Placement{Worker: fill(p.Worker)}
		for key, value := range p.Labels {
			if filled.Labels == nil {
				filled.Labels = map[string]string{}
			}
			filled.Labels[key] = fill(value)
		}
		if missing != nil {
			return nil, missing
		}
		if err := filled.Check(); err != nil {
			return nil, fmt.Errorf("on: part %s: %w", part.Name, err)
		}
		return filled, nil
	}
}

// The error classes belong to the application that runs it.
func (c *compiler) setRetrySkip(s *tree.Step, to *chunk.Config) error {
	matchers := c.deps.Registry.Matchers()
	to.Isolate = chunk.Isolation(s.Chunk.Isolate)
	to.KeepOutputs = !s.Chunk.Reprocess
	to.ProcessInTransaction = s.Chunk.ProcessInTransaction
	to.Concurrency = *s.Chunk.Concurrency
	switch s.Chunk.ReadAhead {
	case "true":
		to.ReadAhead = chunk.ReadAheadOn
	case "false":
		to.ReadAhead = chunk.ReadAheadOff
	}
	to.Classify = matchers.Class
	to.Transient = func(phase core.Phase, err error) bool {
		if phase == core.PhaseWrite {
			return matchers.Is("transient", err)
		}
		return matchers.Is("deadlock", err) || matchers.Is("serialization", err) // others may be errors of a service that an item calls
	}
	var err error
	if to.Retry, err = c.retry(s); err != nil {
		return err
	}
	// With a limit of 0 the step fails with the error itself, not with a limit exceeded.
	if s.Skip != nil && s.Skip.Limit > 0 {
		rules, err := matchers.SkipRules(s.Skip.Errors, s.Skip.Except)
		if err != nil {
			return fmt.Errorf("skip: %w", err)
		}
		to.Skip = chunk.LimitSkip{Limit: int64(s.Skip.Limit), Skippable: rules.Match, Unasked: rules.Unasked}
	}
	return nil
}

func (c *compiler) retry(s *tree.Step) (model.Retry, error) {
	if s.Retry == nil {
		return model.Retry{}, nil
	}
	rules, err := c.deps.Registry.Matchers().RetryRules(s.Retry.Errors, s.Retry.Except)
	if err != nil {
		return model.Retry{}, fmt.Errorf("retry: %w", err)
	}
	return model.Retry{Limit: s.Retry.Limit, Retryable: rules.Match, Unasked: rules.Unasked, Backoff: s.Retry.Backoff}, nil
}
