package job_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// attempt plans a launch, runs it, and compares both: plan lists the certain entries of the plan, ran
// the steps that did their work, separated by spaces.
func (s *script) attempt(j *model.Job, plan, ran string) *core.JobExecution {
	s.e.T.Helper()
	last, err := newestOf(context.Background(), s.e, j.Name)
	require.NoError(s.e.T, err)
	planned, err := planner.New(context.Background(), s.e.Repository, j, last, nil)
	require.NoError(s.e.T, err)
	var certain []string
	for _, e := range planned.Entries {
		if e.Certainty == planner.Certain {
			certain = append(certain, string(e.Act)+" "+e.Element)
		}
	}
	require.Equal(s.e.T, plan, strings.Join(certain, ", "), "the plan")
	exec, did := s.run(j)
	require.Equal(s.e.T, ran, strings.Join(did, " "), "what ran")
	return exec
}

func (s *script) failing(names ...string) {
	s.fails = map[string]bool{}
	for _, name := range names {
		s.fails[name] = true
	}
}

func upon(exit, element string) model.Transition {
	return on(exit, model.TargetElement, func(t *model.Target) { t.Name = element })
}

func stopAt(exit, restart string) model.Transition {
	return on(exit, model.TargetStop, func(t *model.Target) { t.Restart = restart })
}

func flowOf(name string, elements ...model.Element) *model.Job {
	j := testengine.Job(name)
	j.Flow.Elements = elements
	return j
}

func eachScript(t *testing.T, f func(s *script)) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) { f(&script{e: testengine.New(t, url), exits: map[string]string{}}) })
}

func splitOf(name string, next []model.Transition, steps ...*model.StepElement) *model.SplitElement {
	e := &model.SplitElement{Name: name, Workers: 1, Next: next}
	for _, step := range steps {
		e.Branches = append(e.Branches, model.Flow{Elements: []model.Element{step}})
	}
	return e
}

func TestASplitThatAFailureEntersAgainIsRestartedInItsSecondRound(t *testing.T) {
	eachScript(t, func(s *script) {
		check := s.step("check", upon(core.ExitFailed, "both"), on("*", model.TargetEnd))
		load := s.step("load")
		rounds := 0
		counted := s.e.Tasklet("count", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			s.ran = append(s.ran, "count")
			if rounds++; rounds == 2 {
				s.failing("load", "check")
			}
			return nil
		})
		j := flowOf("again", splitOf("both", []model.Transition{to("check")}, counted, load, s.step("other")), check)
		s.failing("check")
		exec := s.attempt(j, "run count, run load, run other", "count load other check count load other")
		require.Equal(t, core.StatusFailed, exec.Status)
		exec = s.attempt(j, "pass count, resume load, pass other", "load")
		require.Equal(t, core.StatusFailed, exec.Status)
		s.failing()
		exec = s.attempt(j, "pass count, resume load, pass other", "load check")
		require.Equal(t, core.StatusCompleted, exec.Status)
	})
}

func TestARestartInALaterRoundRunsNothingOfAnEarlierOne(t *testing.T) {
	eachScript(t, func(s *script) {
		last := s.step("last", upon("AGAIN", "a"), on("*", model.TargetEnd))
		last.AllowStartIfComplete = true
		manager := tx.NewManager(s.e.Database)
		tails := map[string]model.Element{
			"last": last,
			"s":    splitOf("s", []model.Transition{upon(core.ExitFailed, "a")}, s.step("last"), s.step("other")),
			"g": &model.AtomicElement{
				Name: "g", Database: s.e.Database.Name(), Snapshot: true,
				Flow: model.Flow{Elements: []model.Element{s.step("other", to("last")), s.step("last")}},
				Do:   func(ctx context.Context, fn func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, fn) },
				Next: []model.Transition{upon(core.ExitFailed, "a")},
			},
		}
		for name, once := range map[string]string{"last": "last", "s": "last other", "g": "other last"} {
			rounds := 0
			a := s.e.Tasklet("a", tx.Attr{}, func(context.Context, *core.StepContribution) error {
				s.ran = append(s.ran, "a")
				if rounds++; rounds == 2 {
					return errors.New("told to fail")
				}
				return nil
			})
			a.Next = []model.Transition{to(name)}
			j := flowOf("tail of "+name, a, tails[name])
			s.failing("last")
			if name == "last" {
				s.exits["last"] = "AGAIN"
				s.failing()
			}
			s.attempt(j, "run a", "a "+once+" a")
			s.exits["last"] = ""
			s.failing()
			plan := map[string]string{"s": "pass other, resume a", "g": "resume a", "last": "pass last, resume a"}[name]
			exec := s.attempt(j, plan, "a "+once)
			require.Equal(s.e.T, core.StatusCompleted, exec.Status, name)
			steps, err := s.e.Repository.Steps(context.Background(), exec.ID)
			require.NoError(s.e.T, err)
			require.Len(s.e.T, steps, 1+len(strings.Fields(once)), name)
		}
	})
}

func TestALoopOfAStepThatMayStartAgainIsKilledTwiceInOneRound(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		flow := func(w *weather) model.Flow {
			first, second := w.step("a"), w.step("b")
			first.AllowStartIfComplete = true
			f := w.rounds(first)
			f.Elements = append([]model.Element{f.Elements[0], second}, f.Elements[1:]...)
			first.Next = nil
			w.lead(first, "b")
			w.lead(second, "m")
			return f
		}
		deaths, each := 0, 1
		if !onSQLite(url) && !isSoak() {
			each = 3 // alternates between before a write and after one
		}
		each = rarely(each)
		for first := 8; first < 18; first += each {
			for second := 1; second < 9; second += 2 {
				w := &weather{Engine: e, name: fmt.Sprintf("twice %d %d", first, second)}
				j := w.ofFlow(flow)
				for _, write := range []int{first, second} {
					w.killAt = &killAt{write: write, after: write%2 == 0}
					_, err := w.launch(j)
					if w.killAt.happened {
						require.Error(t, err)
						deaths++
					}
				}
				w.killAt = nil
				exec, err := w.launch(j)
				require.NoError(t, err, w.name)
				require.Equal(t, core.StatusCompleted, exec.Status, "%s: %s", w.name, exec.Error)
				require.Equal(t, []int64{2, 2}, []int64{w.rows("b"), w.rows("m")}, w.name)
				require.GreaterOrEqual(t, w.rows("a"), int64(2), w.name)
				require.LessOrEqual(t, w.rows("a"), int64(4), w.name)
			}
		}
		require.Greater(t, deaths, 60/each)
	})
}

func TestAWayThatWasLeftIsNotReplayed(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("left", s.step("a", upon(core.ExitFailed, "fix"), to("b")), s.step("fix"), s.step("b"))
		s.failing("a", "fix")
		s.attempt(j, "run a", "a fix")
		s.failing("b")
		s.attempt(j, "resume a", "a b")
		s.failing()
		s.attempt(j, "pass a, resume b", "b")
	})
}

func TestAWayThatWasCutShortIsNotReplayed(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("short", s.step("a", upon(core.ExitFailed, "fix"), to("c")), s.step("fix", upon("*", "c")), s.step("c"))
		s.failing("a", "fix", "c")
		s.attempt(j, "run a", "a fix c")
		s.failing("c")
		s.attempt(j, "resume a", "a c")
		s.failing()
		s.attempt(j, "pass a, resume c", "c")
	})
}

func TestTheWayToAStopIsNotReplayedBehindItsRestartPoint(t *testing.T) {
	eachScript(t, func(s *script) {
		a := s.step("a", upon("OTHER", "d"), to("b"))
		a.AllowStartIfComplete = true
		j := flowOf("jump", a, s.step("b", upon("*", "c")), s.step("c", stopAt("*", "a")), s.step("d"))
		s.failing("b", "c")
		exec := s.attempt(j, "run a", "a b c")
		require.Equal(t, core.StatusStopped, exec.Status)
		s.exits["a"] = "OTHER"
		s.failing("d")
		s.attempt(j, "repeat a", "a d")
		s.failing()
		s.attempt(j, "repeat a", "a d")
	})
}

func TestWhatCompletedOnTheWayToAStopIsPassedByEveryRestart(t *testing.T) {
	eachScript(t, func(s *script) {
		a := s.step("a", to("b"))
		j := flowOf("way", a, s.step("b", to("c")), s.step("c", stopAt("*", "a")), s.step("n", to("b")))
		require.Equal(t, core.StatusStopped, s.attempt(j, "run a", "a b c").Status)
		a.Next = []model.Transition{to("n")}
		s.failing("n")
		require.Equal(t, core.StatusFailed, s.attempt(j, "pass a, run n", "n").Status)
		s.failing()
		require.Equal(t, core.StatusStopped, s.attempt(j, "pass a, resume n", "n c").Status, "b is passed")
	})
}

func TestAStepThatCompletedAndStoppedRunsAgainBehindTheRestartPoint(t *testing.T) {
	eachScript(t, func(s *script) {
		t := s.e.T
		j := flowOf("asked", s.step("a", to("b")), s.step("b", to("c")), s.step("c", stopAt("ASK", "a"), to("d")), s.step("d"))
		s.exits["c"] = "ASK"
		require.Equal(t, core.StatusStopped, s.attempt(j, "run a", "a b c").Status)
		const plan = "pass a, pass b, repeat c"
		require.Equal(t, core.StatusStopped, s.attempt(j, plan, "c").Status, "it asks again")
		s.exits["c"] = ""
		s.failing("c")
		require.Equal(t, core.StatusFailed, s.attempt(j, plan, "c").Status)
		s.failing("d")
		require.Equal(t, core.StatusFailed, s.attempt(j, "pass a, pass b, resume c", "c d").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, pass b, pass c, resume d", "d").Status)
	})
}

func TestAStepThatWasPassedAndStopsIsTheOneThatIsAskedAgain(t *testing.T) {
	eachScript(t, func(s *script) {
		x := s.step("x", to("z"))
		j := flowOf("passed", s.step("a", upon(core.ExitFailed, "x"), to("y")), s.step("y", to("x")), x, s.step("z"))
		s.failing("a", "z")
		s.attempt(j, "run a", "a x z")
		s.failing()
		x.Next = []model.Transition{stopAt("*", "")}
		require.Equal(t, core.StatusStopped, s.attempt(j, "resume a", "a y").Status, "x is passed, and stops")
		x.Next = []model.Transition{to("z")}
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, pass y, repeat x", "x z").Status)
	})
}

func TestASplitOnAWayThatWasLeftIsContinuedOnTheNewOne(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("adopted", s.step("a", upon(core.ExitFailed, "s"), to("y")), s.step("y", to("s")), splitOf("s", nil, s.step("x"), s.step("z")))
		s.failing("a", "z")
		s.attempt(j, "run a", "a x z")
		s.failing("z")
		s.attempt(j, "resume a", "a y z")
		s.attempt(j, "pass a, pass y, pass x, resume z", "z")
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, pass y, pass x, resume z", "z").Status)
	})
}

func TestADecisionBeforeAGroupThatRollsBackIsRemembered(t *testing.T) {
	for again, ran := range map[bool]string{false: "x y", true: "a h"} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			eachScript(t, func(s *script) {
				asked := 0
				d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) {
					asked++
					return []string{"", "G", "H"}[asked], nil
				}, Next: []model.Transition{upon("G", "g"), upon("H", "h")}}
				manager := tx.NewManager(s.e.Database)
				a, x := s.step("a", to("d")), s.step("x", to("y"))
				a.AllowStartIfComplete = again
				g := &model.AtomicElement{
					Name: "g", Database: s.e.Database.Name(), Flow: model.Flow{Elements: []model.Element{x, s.step("y")}},
					Do: func(ctx context.Context, fn func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, fn) },
				}
				j := flowOf("kept", a, d, g, s.step("h"))
				s.failing("y")
				require.Equal(t, core.StatusFailed, s.attempt(j, "run a", "a x y").Status)
				s.failing()
				plan := map[bool]string{false: "pass a, resume x", true: "repeat a"}[again]
				require.Equal(t, core.StatusCompleted, s.attempt(j, plan, ran).Status)
				require.Equal(t, map[bool]int{false: 1, true: 2}[again], asked)
			})
		})
	}
}

func TestADecisionBehindAStepThatRunsAgainIsTakenAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			eachScript(t, func(s *script) {
				asked := 0
				d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) {
					asked++
					return []string{"", "B", "C"}[asked], nil
				}, Next: []model.Transition{upon("B", "b"), upon("C", "c")}}
				a := s.step("a", to("d"))
				a.AllowStartIfComplete = again
				j := flowOf("taken", a, d, s.step("b"), s.step("c"))
				s.failing("b")
				s.attempt(j, "run a", "a b")
				s.failing()
				if again {
					s.attempt(j, "repeat a", "a c")
					return
				}
				s.attempt(j, "pass a, resume b", "b")
			})
		})
	}
}

func TestAPlanOfAnErrorInTheWalkIsAnEnd(t *testing.T) {
	eachScript(t, func(s *script) {
		once := 1
		limited := func(name string) *model.StepElement {
			step := s.step(name)
			step.StartLimit = &once
			return step
		}
		plan := func(j *model.Job) *planner.Plan {
			last, err := newestOf(context.Background(), s.e, j.Name)
			require.NoError(s.e.T, err)
			plan, err := planner.New(context.Background(), s.e.Repository, j, last, nil)
			require.NoError(s.e.T, err)
			return plan
		}
		recorded := &model.FlowElement{
			Name: "f", AsStep: true, Flow: model.Flow{Elements: []model.Element{limited("a")}},
			Next: []model.Transition{upon(core.ExitFailed, "b"), on("*", model.TargetEnd)},
		}
		j := flowOf("inside", recorded, s.step("b"))
		s.failing("a", "b")
		s.attempt(j, "run f, run a", "a b")
		require.Nil(s.e.T, plan(j).Limit, "f fails, and b runs")
		s.failing()
		require.Equal(s.e.T, core.StatusCompleted, s.attempt(j, "resume f, resume b", "b").Status)

		j = flowOf("top", limited("a"))
		s.failing("a")
		s.attempt(j, "run a", "a")
		require.Equal(s.e.T, &walk.StartLimitError{Step: "a", Attempts: 1, Limit: 1}, plan(j).Limit)
		require.Equal(s.e.T, core.StatusFailed, plan(j).Outcome.Status)

		s.failing()
		s.exits["a"] = "ODD"
		j = flowOf("strict", s.step("a", upon("EVEN", "b")), s.step("b"))
		j.Flow.Strict = true
		exec := s.attempt(j, "run a", "a")
		require.Contains(s.e.T, exec.Error, ports.ErrNoTransition.Error())
		require.Equal(s.e.T, exec.Error, plan(j).Outcome.Message)
		s.exits["a"] = ""
	})
}

func TestARestartPointThatPrecedesTheStopIsWhereTheRestartBegins(t *testing.T) {
	eachScript(t, func(s *script) {
		repeats := s.step("r", to("b"))
		repeats.AllowStartIfComplete = true
		j := flowOf("once", s.step("z", to("a")), s.step("a", to("r")), repeats,
			s.step("b", upon(core.ExitFailed, "c"), to("c")), s.step("c", stopAt("*", "a")))
		s.failing("b")
		exec := s.attempt(j, "run z", "z a r b c")
		require.Equal(s.e.T, core.StatusStopped, exec.Status)
		s.failing()
		exec = s.attempt(j, "pass z, pass a, repeat r", "r b c")
		require.Equal(s.e.T, core.StatusStopped, exec.Status)
	})
}
