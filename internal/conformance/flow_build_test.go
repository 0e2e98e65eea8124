package conformance_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// definitionError is a mistake in a definition that a model.Flow cannot even express; the others are
// *model.FlowProblem.
type definitionError struct{ kind, element string }

func (e *definitionError) Error() string { return fmt.Sprintf("element %s: %s", e.element, e.kind) }

const nextAndOn = "next_and_on_both_present"

type flowBuilder struct {
	run *flowRun
	on  map[string][]flowTransition // in place of the elements' own
	// taken are the names of elements so far: the elements of another flow get different ones, because names
	// of elements are unique in a job and names of steps are not.
	taken map[string]int
}

func (b *flowBuilder) flow(elements []flowElement, path string) (model.Flow, error) {
	flow := model.Flow{Strict: b.run.scenario.StrictTransitions}
	ids := b.names(elements)
	var errs []error
	for i := range elements {
		e, err := b.element(&elements[i], ids, fmt.Sprintf("%s/%d", path, i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		flow.Elements = append(flow.Elements, e)
	}
	return flow, errors.Join(errs...)
}

func (b *flowBuilder) names(elements []flowElement) map[string]string {
	ids := map[string]string{}
	for i := range elements {
		name := elements[i].name()
		if _, here := ids[name]; here {
			continue // twice in one flow: a mistake that is to be found
		}
		ids[name] = name
		if n := b.taken[name]; n > 0 {
			ids[name] = fmt.Sprintf("%s#%d", name, n+1)
		}
		b.taken[name]++
	}
	return ids
}

func (b *flowBuilder) element(e *flowElement, ids map[string]string, path string) (model.Element, error) {
	next, err := b.transitions(e, ids)
	id, when := ids[e.name()], b.condition(e.name()+" when", path, e.When)
	switch {
	case e.Step != "":
		s, stepErr := b.step(e, path)
		return &model.StepElement{ID: id, When: when, Step: s, Next: next, AllowStartIfComplete: e.AllowStartIfComplete, StartLimit: e.StartLimit}, errors.Join(err, stepErr)
	case e.Decision != "":
		return &model.DecisionElement{Name: id, When: when, Decide: b.decide(e, path), Next: next}, err
	case e.Split != "":
		split := &model.SplitElement{Name: id, When: when, Workers: max(e.Concurrency, b.run.scenario.Concurrency), Next: next}
		for i, branch := range e.Flows {
			flow, flowErr := b.flow(branch, fmt.Sprintf("%s/%d", path, i))
			err = errors.Join(err, flowErr)
			split.Branches = append(split.Branches, flow)
		}
		return split, err
	}
	inner, innerErr := b.flow(e.Elements, path)
	if e.Atomic != "" {
		db := b.run.engine.Database
		do := func(ctx context.Context, fn func(ctx context.Context) error) error {
			return tx.NewManager(db).Do(ctx, tx.Attr{}, fn)
		}
		return &model.AtomicElement{Name: id, When: when, Flow: inner, Database: db.Name(), Do: do, Next: next}, errors.Join(err, innerErr)
	}
	return &model.FlowElement{
		Name: id, When: when, Flow: inner, AsStep: e.FlowStep != "", AllowStartIfComplete: e.AllowStartIfComplete, StartLimit: e.StartLimit, Next: next,
	}, errors.Join(err, innerErr)
}

func (b *flowBuilder) transitions(e *flowElement, ids map[string]string) ([]model.Transition, error) {
	target := func(name string) string {
		if id, here := ids[name]; here {
			return id
		}
		return name
	}
	if e.Next != "" && len(e.On) > 0 {
		return nil, &definitionError{nextAndOn, e.name()}
	}
	on, overridden := b.on[e.name()]
	if !overridden {
		on = e.On
		if e.Next != "" {
			return []model.Transition{{Pattern: "*", Success: true, Target: model.Target{Kind: model.TargetElement, Name: target(e.Next)}}}, nil
		}
	}
	var list []model.Transition
	for _, t := range on {
		if err := t.validate(); err != nil {
			return nil, errors.Join(&definitionError{"invalid_transition", e.name()}, err)
		}
		to := model.Target{Exit: t.Exit}
		switch {
		case t.End:
			to.Kind = model.TargetEnd
		case t.Fail:
			to.Kind = model.TargetFail
		case t.Stop:
			to.Kind, to.Restart = model.TargetStop, target(t.Restart)
		default:
			to.Kind, to.Name = model.TargetElement, target(t.To)
		}
		list = append(list, model.Transition{Pattern: *t.Match, Target: to})
	}
	return list, nil
}

// step is a tasklet that follows its script. One that waits for a stop has no transaction: on a database with
// one writer it would keep the request away.
func (b *flowBuilder) step(e *flowElement, path string) (model.Step, error) {
	s, err := b.run.script(path, e.Outcome)
	if err != nil {
		return nil, err
	}
	attr := tx.Attr{}
	if e.TerminateOnly || s.waits() {
		attr.Propagation = tx.NotSupported
	}
	run := b.run
	return step.NewTasklet(step.TaskletConfig{
		Name: e.Step, Database: run.engine.Database, Attr: attr, Expect: b.condition(e.name()+" gate", path, e.Gate),
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
				a, n := s.take()
				if err := run.look(ctx, c); err != nil {
					return err
				}
				if err := run.write(ctx, e.Step); err != nil {
					return err
				}
				return stage{repository: run.engine.Repository.Ports(), stops: e.TerminateOnly && n == 0}.play(ctx, c, a)
			}), nil
		},
	})
}

func (b *flowBuilder) decide(e *flowElement, path string) func(context.Context, *core.View) (string, error) {
	returns := b.run.verdicts(path, e.Returns)
	return func(context.Context, *core.View) (string, error) {
		b.run.asked(e.name())
		switch a, _ := returns.take(); a.word {
		case actError:
			return "", errDecider
		case actPanic:
			panic("the scenario says PANIC")
		default:
			return a.exit, nil
		}
	}
}

func (b *flowBuilder) condition(name, path string, answers []bool) *model.Condition {
	if len(answers) == 0 {
		return nil
	}
	var texts []string
	for _, answer := range answers {
		texts = append(texts, fmt.Sprint(answer))
	}
	script := b.run.verdicts(path+" "+name, texts)
	return &model.Condition{Text: name, Holds: func(context.Context, *core.View) (bool, error) {
		b.run.asked(name)
		a, _ := script.take()
		return a.exit == "true", nil
	}}
}
