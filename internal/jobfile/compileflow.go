package jobfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// flow compiles a list of elements. The error names everything that is missing.
func (c *compiler) flow(list *listDef) (model.Flow, error) {
	var flow model.Flow
	var errs []error
	for _, e := range list.elements {
		compiled, err := c.element(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", e.kind.word(), e.name, err))
			continue
		}
		flow.Elements = append(flow.Elements, compiled)
	}
	return flow, errors.Join(errs...)
}

func (c *compiler) flows(lists []*listDef) ([]model.Flow, error) {
	var flows []model.Flow
	var errs []error
	for _, list := range lists {
		flow, err := c.flow(list)
		flows, errs = append(flows, flow), append(errs, err)
	}
	return flows, errors.Join(errs...)
}

// element compiles an element with the flows in it.
func (c *compiler) element(e *elementDef) (model.Element, error) {
	when := e.when.compiled(c.file)
	remote, distributed := c.splitOnWorkers(e), c.deps.Distributed
	c.deps.Distributed = distributed && !remote // a branch on workers runs entirely on its worker
	inner, err := c.flows(e.lists)
	c.deps.Distributed = distributed
	if err != nil {
		return nil, err
	}
	switch e.kind {
	case splitKind:
		split := &model.SplitElement{Name: e.name, When: when, Branches: inner, OnWorkers: remote, On: e.on, Next: e.edges}
		if n := e.model.split.Parallel; n != nil {
			split.Workers = *n
		}
		return split, nil
	case flowKind:
		return &model.FlowElement{Name: e.name, When: when, Flow: inner[0], Next: e.edges}, nil
	case atomicKind:
		return c.group(e, when, inner[0])
	case decideKind:
		return &model.DecisionElement{Name: e.name, When: when, Decide: c.decide(e), Next: e.edges}, nil
	case jobKind:
		made, err := c.child(e.step)
		return &model.StepElement{Step: made, When: when, Next: e.edges, StartLimit: e.model.job.StartLimit}, err
	case stepKind:
	}
	made, err := c.step(e.step)
	m := e.step.model
	return &model.StepElement{Step: made, When: when, Next: e.edges, AllowStartIfComplete: m.AllowStartIfComplete, StartLimit: m.StartLimit}, err
}

// step compiles a step, with its partitions where it has some.
func (c *compiler) step(s *stepDef) (model.Step, error) {
	made, err := c.work(s)
	if err != nil || s.partitioner == nil {
		return made, err
	}
	db, err := c.deps.Provider.Database(c.database(s))
	if err != nil {
		return nil, err
	}
	config := step.PartitionConfig{
		Step: made, Partitioner: c.builder(s.name, s, s.partitioner).partitioner, Database: db,
		Expect: s.expect.compiled(c.file), Promote: s.promote, OnWorkers: s.model.Partition.Remote, On: onOfPart(s.on),
	}
	if workers := s.model.Partition.Workers; workers != nil {
		config.Workers = *workers
	}
	return step.NewPartitioned(config)
}

// work compiles the work of a step, or its work for one partition: the gate and the promotion belong to the
// whole step.
func (c *compiler) work(s *stepDef) (model.Step, error) {
	db, err := c.deps.Provider.Database(c.database(s))
	if err != nil {
		return nil, err
	}
	a := c.builder(s.name, s, append(s.work(), s.listeners...)...)
	var expect *model.Condition
	var promote *model.Promotion
	if s.partitioner == nil {
		expect, promote = s.expect.compiled(c.file), s.promote
	}
	listeners := a.stepListeners
	if len(s.listeners) == 0 {
		listeners = nil
	}
	if s.tasklet != nil {
		retry, err := c.retry(s)
		if err != nil {
			return nil, err
		}
		return step.NewTasklet(step.TaskletConfig{
			Name: s.name, Database: db, Attr: c.attr(s), Retry: retry, Timeout: timeout(s.timeout), Assemble: a.tasklet,
			Listeners: listeners, Expect: expect, Promote: promote,
		})
	}
	if s.tasks != nil {
		return c.tasks(s, a, step.TasksConfig{Expect: expect, Promote: promote, Listeners: listeners})
	}
	config := chunk.Config{
		Name: s.name, Size: *s.chunk.Size, Database: db, Attr: c.attr(s), Timeout: timeout(s.timeout), Assemble: a.parts,
		Listeners: listeners, Expect: expect, Promote: promote,
	}
	config.CreatesTargets = s.createsTargets()
	if s.hasTargets() {
		config.Targets = a.targets
	}
	if err := c.setRetrySkip(s, &config); err != nil {
		return nil, err
	}
	config.ProcessInTransaction = config.ProcessInTransaction || s.inTransaction() != nil
	if c.wrapParts != nil {
		config.Assemble = c.wrapParts(config.Assemble)
	}
	return chunk.New(config)
}

// child compiles the job of a child, and the step that runs it.
func (c *compiler) child(s *stepDef) (model.Step, error) {
	if s.child.file == nil {
		return nil, errors.New(s.child.missing) // reported by checkDatabases
	}
	compiled, err := s.child.file.Compile(c.deps)
	if err != nil {
		return nil, err
	}
	return step.NewJob(step.JobConfig{Name: s.name, Job: compiled, OnWorkers: c.onWorkers(s.child), On: s.child.on, Params: func(_ context.Context, view *core.View) (core.Parameters, error) {
		return c.file.childParameters(s.child, view)
	}, Confinement: func(ctx context.Context, view *core.View) *core.Confinement {
		return c.file.childConfinement(ctx, s.child, view)
	}})
}

// decide makes the function of a decision: the first choice that holds, or the decider's answer.
func (c *compiler) decide(e *elementDef) func(ctx context.Context, view *core.View) (string, error) {
	if e.decider != nil {
		a := c.builder(e.name, nil, e.decider)
		return func(ctx context.Context, view *core.View) (verdict string, err error) {
			decider, err := one[core.Decider](ctx, a, view, e.decider)
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
	choices := make([]choice, len(e.choices))
	for i, of := range e.choices {
		choices[i] = choice{of.when.compiled(c.file), of.verdict}
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

// group compiles an atomic group.
func (c *compiler) group(e *elementDef, when *model.Condition, inner model.Flow) (model.Element, error) {
	db, err := c.deps.Provider.Database(c.groupDatabase(e))
	if err != nil {
		return nil, err
	}
	manager, attr := tx.NewManager(db), c.file.groupTransaction(e).attr()
	return &model.AtomicElement{
		Name: e.name, When: when, Flow: inner, Database: db.Name(), Next: e.edges,
		Snapshot: db.Dialect() == tx.Postgres && attr.Isolation >= sql.LevelRepeatableRead,
		Do: func(ctx context.Context, fn func(ctx context.Context) error) error {
			return markUnknownOutcome(manager.Do(ctx, attr, fn))
		},
	}, nil
}

// markUnknownOutcome marks the failure of a COMMIT with an unknown effect (rule C10).
func markUnknownOutcome(err error) error {
	if errors.As(err, new(*tx.CommitError)) && !errors.Is(err, tx.ErrRolledBack) {
		return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	}
	return err
}

// groupDatabase is the database of a group's transaction: the database of its steps.
func (c *compiler) groupDatabase(e *elementDef) string {
	for _, inner := range e.lists[0].elements {
		if inner.step != nil && c.joinsGroup(inner.step) {
			return c.database(inner.step)
		}
	}
	return c.file.model.Database
}

// joinsGroup reports whether a step may take part in the group's transaction.
func (c *compiler) joinsGroup(s *stepDef) bool {
	switch c.attr(s).Propagation {
	case tx.NotSupported, tx.Never, tx.RequiresNew:
		return false
	case tx.Required, tx.Nested, tx.Supports, tx.Mandatory:
	}
	return true
}

// checkGroup reports elements that cannot work in a group's transaction, whatever their steps do.
func (c *compiler) checkGroup(e *elementDef) {
	name := c.groupDatabase(e)
	db, err := c.deps.Provider.Database(name)
	if err != nil {
		return // reported
	}
	if t := c.file.groupTransaction(e); t != nil {
		c.checkAttr(t, db, t.attr())
	}
	for _, inner := range e.lists[0].elements {
		s := inner.step
		if s == nil || s.model == nil {
			continue
		}
		at := s.model.Node.KeyOf("step")
		if t := s.model.Transaction; t != nil && t.Node.Get("propagation") != nil {
			at = t.Node.Get("propagation")
		}
		attr, own := c.attr(s), c.database(s)
		switch {
		case c.joinsGroup(s) && own != name:
			c.problems.Add(at, fmt.Sprintf("the steps of an atomic group work in one database, and here are %s and %s", name, own), "a step with propagation REQUIRES_NEW, NOT_SUPPORTED or NEVER may work in another one")
		case attr.Propagation == tx.Never && own == name:
			c.problems.Add(at, "propagation NEVER fails in an atomic group, which has a transaction", "NOT_SUPPORTED runs without it")
		case attr.Propagation == tx.RequiresNew && own == name && db.SingleWriter() && !attr.ReadOnly:
			c.problems.Add(at, fmt.Sprintf("propagation REQUIRES_NEW in an atomic group: database %s has one writer, and the group's transaction holds it", name), "REQUIRED joins the group's transaction, NESTED makes a savepoint in it")
		}
	}
}
