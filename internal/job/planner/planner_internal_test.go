package planner

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type named string

func (n named) Name() string                                { return string(n) }
func (n named) Kind() string                                { return "tasklet" }
func (named) Execute(context.Context, *model.StepRun) error { return nil }

type knowing struct {
	Oracle
	holds, ok bool
}

func (k knowing) Condition(core.Visit) (holds, ok bool) { return k.holds, k.ok }

func TestThePortOfAPlanAnswersConditions(t *testing.T) {
	t.Parallel()
	tried := func(holds, known bool, err error) *model.Condition {
		return &model.Condition{
			Text: "c", Holds: func(context.Context, *core.View) (bool, error) { panic("a plan calls no code of an author") },
			Try: func(context.Context, *core.View, model.Unknown) (bool, bool, error) { return holds, known, err },
		}
	}
	panics := tried(true, true, nil)
	panics.Try = func(context.Context, *core.View, model.Unknown) (bool, bool, error) { panic("oops") }
	goCode := tried(true, true, nil)
	goCode.Try = nil
	for name, c := range map[string]struct {
		condition *model.Condition
		oracle    Oracle
		want      walk.Answer
		entry     Act // of an element without a step; empty if none
	}{
		"none":                     {nil, nil, walk.Yes, ""},
		"holds":                    {tried(true, true, nil), nil, walk.Yes, ""},
		"does not hold":            {tried(false, true, nil), nil, walk.No, ActSkip},
		"unknown":                  {tried(true, false, nil), nil, walk.Perhaps, ActAsk},
		"fails":                    {tried(true, true, errors.New("oops")), nil, walk.Perhaps, ActAsk},
		"panics":                   {panics, nil, walk.Perhaps, ActAsk},
		"of Go code":               {goCode, nil, walk.Perhaps, ActAsk},
		"the oracle says yes":      {goCode, knowing{holds: true, ok: true}, walk.Yes, ""},
		"the oracle says no":       {tried(true, true, nil), knowing{ok: true}, walk.No, ActSkip},
		"the oracle does not know": {tried(false, true, nil), knowing{holds: true}, walk.No, ActSkip},
	} {
		step := &model.StepElement{Step: named("s"), When: c.condition}
		for _, at := range []model.Element{step, &model.FlowElement{Name: "f", When: c.condition}} {
			exec := &core.JobExecution{Context: core.NewExecutionContext()}
			attempt := &walk.Attempt{Journal: &journal.Journal{}, Progress: walk.NewProgress(nil)}
			d := newDry(&model.Job{}, exec, attempt, c.oracle)
			w := walk.New(attempt, d, walk.Start{Flow: model.Flow{Elements: []model.Element{at}}})
			got, err := d.Holds(t.Context(), w, at)
			require.NoError(t, err, name)
			require.Equal(t, c.want, got, name)
			var entries []Entry
			if at != step && c.entry != "" {
				entries = []Entry{{Visit: core.Visit{Element: "f"}, Kind: "condition", Act: c.entry, Certainty: Certain}}
			}
			require.ElementsMatch(t, entries, d.plan.Entries, name)
		}
	}
}

func TestAConditionOfAPlanAsksOnlyWhatIsKnown(t *testing.T) {
	t.Parallel()
	leads := func(name, to string) *model.StepElement {
		return &model.StepElement{Step: named(name), Next: []model.Transition{{Pattern: "*", Target: model.Target{Kind: model.TargetElement, Name: to}}}}
	}
	flow := model.Flow{Elements: []model.Element{leads("passed", "looped"), leads("looped", "looped"), leads("planned", "end"), leads("noop", "end")}}
	history := map[string]core.StepExecution{}
	for name, id := range map[string]core.JobExecutionID{"passed": 1, "looped": 1, "planned": planned, "noop": planned} {
		history[name] = core.StepExecution{Name: name, JobExecutionID: id}
	}
	for name, c := range map[string]struct {
		steps   []string // of the history
		after   string
		context bool
		unknown map[string]bool
	}{
		"the path is certain":            {[]string{"passed", "noop"}, "", false, map[string]bool{"passed": false, "noop": false, "absent": false}},
		"after a step that would run":    {[]string{"passed", "planned"}, "", true, map[string]bool{"passed": false, "planned": true, "absent": false}},
		"after an unknown outcome":       {[]string{"passed", "noop"}, "x", true, map[string]bool{"passed": false, "noop": true, "absent": true}},
		"in a loop, the path is certain": {[]string{"looped"}, "", false, map[string]bool{"looped": false}},
		"in a loop, after an unknown":    {[]string{"looped"}, "x", true, map[string]bool{"looped": true}},
		"passed, where that is not sure": {[]string{"notSure"}, "", false, map[string]bool{"notSure": true}},
	} {
		attempt := &walk.Attempt{Journal: &journal.Journal{}, Progress: walk.NewProgress(nil)}
		d := &dry{job: &model.Job{Flow: flow}, attempt: attempt, alwaysPassed: map[string]bool{"passed": true, "looped": true}, noops: map[string]bool{"noop": true}}
		w := walk.New(attempt, d, walk.Start{Flow: flow})
		w.After = c.after
		for _, step := range c.steps {
			s := history[step]
			s.Name = step
			attempt.Progress.RecordPassed(s)
		}
		u := d.unknown(w)
		require.Equal(t, c.context, u.Context, name)
		for step, want := range c.unknown {
			require.Equal(t, want, u.Step(step), "%s: %s", name, step)
		}
	}
}

// The execution itself would not end.
func TestAPlanOfALoopInWhichNothingRunsEnds(t *testing.T) {
	t.Parallel()
	never := &model.Condition{Text: "never", Try: func(context.Context, *core.View, model.Unknown) (bool, bool, error) { return false, true, nil }}
	inner := model.Flow{Elements: []model.Element{&model.StepElement{Step: named("inner"), When: never}}}
	to := func(name string) []model.Transition {
		return []model.Transition{{Pattern: core.ExitFailed, Target: model.Target{Kind: model.TargetEnd}}, {Pattern: "*", Target: model.Target{Kind: model.TargetElement, Name: name}}}
	}
	j := &model.Job{Name: "j", Flow: model.Flow{Elements: []model.Element{
		&model.StepElement{Step: named("a"), When: never, Next: to("b")},
		&model.FlowElement{Name: "b", Flow: inner, Next: to("c")},
		&model.SplitElement{Name: "c", Branches: []model.Flow{inner}, When: never, Next: to("a")},
	}}}
	plan, err := New(t.Context(), nil, j, nil, nil)
	require.NoError(t, err)
	require.Nil(t, plan.Outcome)
	require.Equal(t, []string{"a skip certain", "inner skip certain", "c skip certain", "a run if"}, actsOf(plan.Entries[:4]))
	require.Less(t, len(plan.Entries), 12)
}

func actsOf(entries []Entry) []string {
	var acts []string
	for _, e := range entries {
		acts = append(acts, e.Element+" "+string(e.Act)+" "+string(e.Certainty))
	}
	return acts
}
