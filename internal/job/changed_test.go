package job_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func groupOf(s *script, next string, elements ...model.Element) model.Element {
	manager := tx.NewManager(s.e.Database)
	return &model.AtomicElement{
		Name: "g", Database: s.e.Database.Name(), Flow: model.Flow{Elements: elements}, Next: []model.Transition{to(next)},
		Do: func(ctx context.Context, work func(context.Context) error) error {
			return manager.Do(ctx, tx.Attr{}, work)
		},
	}
}

func TestAStepThatCompletedIsPassedWhereverTheDefinitionHasItNow(t *testing.T) {
	flow := func(s *script, name string, steps ...string) model.Element {
		e := &model.FlowElement{Name: name, Next: []model.Transition{to("c")}}
		for _, step := range steps {
			e.Flow.Elements = append(e.Flow.Elements, s.step(step))
		}
		return e
	}
	split := func(s *script, steps ...string) model.Element {
		e := &model.SplitElement{Name: "s", Workers: 1, Next: []model.Transition{to("c")}}
		for _, step := range steps {
			e.Branches = append(e.Branches, model.Flow{Elements: []model.Element{s.step(step)}})
		}
		return e
	}
	alone := func(s *script, name string) model.Element { return s.step(name, to("c")) }
	group := func(s *script, name string) model.Element { return groupOf(s, "c", s.step(name)) }
	type made = func(s *script) []model.Element
	one := func(e func(s *script) model.Element) made {
		return func(s *script) []model.Element { return []model.Element{e(s)} }
	}
	a := one(func(s *script) model.Element { return alone(s, "a") })
	inF := one(func(s *script) model.Element { return flow(s, "f", "a") })
	twoBranches := one(func(s *script) model.Element { return split(s, "a", "b") })
	for name, c := range map[string]struct{ before, after made }{
		"into a flow":                {a, inF},
		"into a group":               {a, one(func(s *script) model.Element { return group(s, "a") })},
		"into a split":               {a, one(func(s *script) model.Element { return split(s, "a") })},
		"out of a flow":              {inF, a},
		"out of a group":             {one(func(s *script) model.Element { return group(s, "a") }), a},
		"the flow is renamed":        {inF, one(func(s *script) model.Element { return flow(s, "f2", "a") })},
		"the branches are exchanged": {twoBranches, one(func(s *script) model.Element { return split(s, "b", "a") })},
		"a branch fewer":             {twoBranches, one(func(s *script) model.Element { return split(s, "b") })},
		"another order": {
			func(s *script) []model.Element { return []model.Element{s.step("a", to("b")), alone(s, "b")} },
			func(s *script) []model.Element { return []model.Element{s.step("b", to("a")), alone(s, "a")} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachScript(t, func(s *script) {
				s.failing("c")
				exec, _ := s.run(flowOf("moved", append(c.before(s), s.step("c"))...))
				require.Equal(t, core.StatusFailed, exec.Status)
				s.failing()
				exec, did := s.run(flowOf("moved", append(c.after(s), s.step("c"))...))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, []string{"c"}, did)
			})
		})
	}
}

func TestAnElementThatIsNewOnTheWayRuns(t *testing.T) {
	for name, after := range map[string]func(s *script) *model.Job{
		"first": func(s *script) *model.Job {
			return flowOf("grown", s.step("n", to("a")), s.step("a", to("b")), s.step("b", to("c")), s.step("c"))
		},
		"between": func(s *script) *model.Job {
			return flowOf("grown", s.step("a", to("n")), s.step("n", to("b")), s.step("b", to("c")), s.step("c"))
		},
		"before": func(s *script) *model.Job {
			return flowOf("grown", s.step("a", to("b")), s.step("b", to("n")), s.step("n", to("c")), s.step("c"))
		},
		"a branch in front": func(s *script) *model.Job {
			return flowOf("grown", splitOf("s", []model.Transition{to("c")}, s.step("n"), s.step("a"), s.step("b")), s.step("c"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachScript(t, func(s *script) {
				s.failing("c")
				exec, _ := s.run(flowOf("grown", s.step("a", to("b")), s.step("b", to("c")), s.step("c")))
				require.Equal(t, core.StatusFailed, exec.Status)
				s.failing("n")
				exec, did := s.run(after(s))
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Equal(t, []string{"n"}, did)
				s.failing()
				exec, did = s.run(after(s))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, []string{"n", "c"}, did)
			})
		})
	}
}

func TestAVerdictThatLeadsNowhereNowIsTakenAgain(t *testing.T) {
	for name, pay := range map[string]func(s *script, name string) model.Element{
		"a flow": func(s *script, name string) model.Element {
			return &model.FlowElement{Name: name, Flow: model.Flow{Elements: []model.Element{s.step("p")}}, Next: []model.Transition{to("z")}}
		},
		"a step": func(s *script, name string) model.Element { return s.step(name, to("z")) },
	} {
		t.Run(name, func(t *testing.T) {
			eachScript(t, func(s *script) {
				made := func(target string) *model.Job {
					d := &model.DecisionElement{
						Name: "d", Decide: func(context.Context, *core.View) (string, error) { return target, nil },
						Next: []model.Transition{upon(target, target), upon("r", "r")},
					}
					return flowOf("decided", s.step("q", to("d")), d, s.step("r", to("z")), pay(s, target), s.step("z"))
				}
				s.failing("p", "pay")
				exec, _ := s.run(made("pay"))
				require.Equal(t, core.StatusFailed, exec.Status)
				s.failing()
				exec, did := s.run(made("payment"))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Len(t, did, 2, "what failed, or has its place, and z: %v", did)
				require.Equal(t, "z", did[1])
			})
		})
	}
}

func TestAGroupThatCommittedIsPassedAsAWhole(t *testing.T) {
	eachScript(t, func(s *script) {
		nested := s.stepIn("g3", tx.Attr{Propagation: tx.Nested}, upon(core.ExitFailed, "g5"), to("g4"))
		g := groupOf(s, "z", s.step("g1", to("g3")), nested, s.step("g4", to("g5")), s.step("g5"))
		j := flowOf("whole", g, s.step("z"))
		s.failing("g3", "z")
		exec, did := s.run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, []string{"g1", "g3", "g5", "z"}, did)
		s.failing()
		exec = s.attempt(j, "pass g1, pass g5, resume z", "z")
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}
