package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func stored(e *testengine.Engine, exec *core.JobExecution) *core.JobExecution {
	e.T.Helper()
	record, err := e.Repository.Execution(context.Background(), exec.ID)
	require.NoError(e.T, err)
	require.True(e.T, record.Status.IsOver(), record.Status)
	require.Equal(e.T, record.Status, exec.Status)
	require.Equal(e.T, record.ExitCode, exec.ExitCode)
	return record
}

func TestAJobWhoseContextIsTooLargeEnds(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		promoting := func(name string, size int) *model.StepElement {
			s, err := step.NewTasklet(step.TaskletConfig{
				Name: name, Database: e.Database, Promote: &model.Promotion{Keys: map[string]string{"text": name}},
				Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
					return core.TaskletFunc(func(_ context.Context, c *core.StepContribution) error {
						return c.Context.Put("text", strings.Repeat("x", size))
					}), nil
				},
			})
			require.NoError(t, err)
			return &model.StepElement{Step: s}
		}
		j := testengine.Job("job", promoting("a", 40_000), promoting("b", 40_000))
		exec, err := e.Launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		record := stored(e, exec)
		require.Equal(t, core.StatusFailed, record.Status)
		require.Contains(t, record.Error, "too large")
		require.Equal(t, []string{"a"}, record.Context.Keys())
	})
}

type bad struct{}

func (bad) AfterJob(context.Context, *core.JobExecution) error {
	return errors.New("the listener is broken")
}

func TestAListenerThatFailsDoesNotHideHowTheFlowEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		for status, failure := range map[core.Status]error{
			core.StatusCompleted: nil, core.StatusFailed: errors.New("boom"), core.StatusUnknown: ports.ErrUnknownOutcome,
			core.StatusStopped: core.ErrStopped,
		} {
			j := testengine.Job(string(status), e.Tasklet("a", tx.Attr{}, func(context.Context, *core.StepContribution) error { return failure }))
			j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{bad{}}, nil }
			record := stored(e, e.Run(j))
			want := model.MaxStatus(status, core.StatusFailed)
			require.Equal(t, want, record.Status)
			require.Contains(t, record.Error, "the listener is broken")
			if status == core.StatusFailed {
				require.Contains(t, record.Error, "step a: boom")
			}
		}
	})
}

type silent struct{ code string }

func (s silent) AfterJob(_ context.Context, told *core.JobExecution) error {
	told.ExitCode = s.code
	return nil
}

func TestAListenerWithoutAnExitCodeKeepsTheJobs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		for code, want := range map[string]string{"": "COMPLETED", "MINE": "MINE"} {
			j := testengine.Job("job"+code, e.Tasklet("a", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil }))
			j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{silent{code}}, nil }
			require.Equal(t, want, stored(e, e.Run(j)).ExitCode)
		}
	})
}

func TestAnExitCodeThatCannotBeStoredFailsTheJob(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, long := testengine.New(t, url), strings.Repeat("X", 501)
		j := testengine.Job("job", e.Tasklet("a", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil }))
		j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{silent{long}}, nil }
		record := stored(e, e.Run(j))
		require.Equal(t, core.StatusFailed, record.Status)
		require.Equal(t, core.ExitFailed, record.ExitCode)
		require.Contains(t, record.Error, "it has 501 bytes, more than the allowed 500")

		d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) { return long, nil }}
		record = stored(e, e.Run(&model.Job{Name: "decides", Flow: model.Flow{Elements: []model.Element{d}}}))
		require.Equal(t, core.StatusFailed, record.Status)
		require.Contains(t, record.Error, "d: exit code")
	})
}

func TestFinallyRunsThoughTheListenersCannotBeMade(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url)}
		j := testengine.Job("job", s.step("a"))
		j.Finally = model.Flow{Elements: []model.Element{s.step("clean")}}
		j.Listeners = func(context.Context, *core.View) ([]any, error) { return nil, errors.New("no such listener") }
		exec, ran := s.run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "no such listener")
		require.Equal(t, []string{"clean"}, ran)
	})
}

func TestAStrictFlowSaysWhyTheElementFailedThatNothingMatches(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url), fails: map[string]bool{"a": true}}
		j := testengine.Job("job", s.step("a", to("b")), s.step("b"))
		j.Flow.Strict = true
		exec, _ := s.run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, ports.ErrNoTransition.Error())
		require.Contains(t, exec.Error, "step a: told to fail")
	})
}

func TestAPoolThatPanicsRefuses(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Spawn = func(func()) error { panic("the pool is closed") } })
		s := &script{e: e}
		running, err := e.Launcher.Start(t.Context(), testengine.Job("job", s.step("a")), core.Parameters{})
		require.NoError(t, err)
		exec, err := running.Wait()
		require.NoError(t, err)
		require.Contains(t, stored(e, exec).Error, "the pool is closed")

		split := &model.SplitElement{Name: "s", Branches: []model.Flow{{Elements: []model.Element{s.step("b")}}}}
		exec, err = e.Launcher.Run(t.Context(), &model.Job{Name: "split", Flow: model.Flow{Elements: []model.Element{split}}}, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Contains(t, stored(e, exec).Error, "the pool is closed")
		require.Empty(t, s.ran)
	})
}

func TestADecisionThatEndedTheJobIsTakenAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		for name, edges := range map[string][]model.Transition{
			"FAILED": {to("b")}, "STOPPED": {to("b")}, "BAD": {on("BAD", model.TargetFail), to("b")}, "WAIT": {on("WAIT", model.TargetStop), to("b")},
		} {
			for _, nested := range []bool{false, true} {
				s := &script{e: e}
				verdict := name
				d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) { return verdict, nil }, Next: edges}
				flow := model.Flow{Elements: []model.Element{s.step("a", to("d")), d, s.step("b")}}
				if nested {
					flow = model.Flow{Elements: []model.Element{&model.SplitElement{Name: "s", Branches: []model.Flow{flow}}}}
					name += " in a split"
				}
				j := &model.Job{Name: name, Restartable: true, Flow: flow}
				exec, ran := s.run(j)
				require.Contains(t, []core.Status{core.StatusFailed, core.StatusStopped}, exec.Status, name)
				require.Equal(t, []string{"a"}, ran)
				verdict = core.ExitCompleted
				exec, ran = s.run(j)
				require.Equal(t, core.StatusCompleted, exec.Status, "%s: %s", name, exec.Error)
				require.Equal(t, []string{"b"}, ran)
			}
		}
	})
}

func TestAStepOfUnknownOutcomeIsNotRunAgainAfterATakeOver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		w := &weather{Engine: testengine.New(t, url), name: "job"}
		runs := 0
		unknown := w.Tasklet("u", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			runs++
			return ports.ErrUnknownOutcome
		})
		unknown.Next = []model.Transition{{Pattern: core.ExitUnknown, Target: model.Target{Kind: model.TargetElement, Name: "b"}}}
		j := testengine.Job("job", unknown, w.Tasklet("b", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			w.killAt = &killAt{}
			return nil
		}))
		_, err := w.launch(j)
		require.ErrorIs(t, err, core.ErrLostOwner)
		w.killAt = nil
		for range 2 {
			_, err = w.launch(j)
			require.ErrorIs(t, err, ports.ErrUnknownStatus)
		}
		require.Equal(t, 1, runs)
	})
}

func TestAStartLimitCountsAttempts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		w := &weather{Engine: testengine.New(t, url), name: "job"}
		w.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		limit := 3
		s := w.step("s")
		s.StartLimit = &limit
		s.When = &model.Condition{Text: "late", Holds: func(context.Context, *core.View) (bool, error) { return w.rows("m") >= 2, nil }}
		marker := w.step("m")
		w.lead(s, "m")
		w.lead(marker, "d")
		d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) {
			if w.rows("m") < 5 {
				return "AGAIN", nil
			}
			return "ON", nil
		}, Next: []model.Transition{{Pattern: "AGAIN", Target: model.Target{Kind: model.TargetElement, Name: "s"}}}}
		exec, err := w.launch(&model.Job{Name: "job", Flow: model.Flow{Elements: []model.Element{s, marker, d}}})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.EqualValues(t, 3, w.rows("s"))
	})
}

func TestAStepOfAGroupThatIsRolledBackIsAttemptedAsOftenAsItMay(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		w := &weather{Engine: testengine.New(t, url), name: "job"}
		limit, runs := 4, 0
		s := w.Tasklet("s", tx.Attr{}, func(context.Context, *core.StepContribution) error { runs++; return nil })
		s.StartLimit = &limit
		w.lead(s, "f")
		f := w.Tasklet("f", tx.Attr{}, func(context.Context, *core.StepContribution) error { return errors.New("boom") })
		manager := tx.NewManager(w.Database)
		group := &model.AtomicElement{
			Name: "g", Database: w.Database.Name(), Flow: model.Flow{Elements: []model.Element{s, f}},
			Do:   func(ctx context.Context, fn func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, fn) },
			Next: []model.Transition{{Pattern: core.ExitFailed, Target: model.Target{Kind: model.TargetElement, Name: "g"}}},
		}
		exec, err := w.launch(&model.Job{Name: "job", Flow: model.Flow{Elements: []model.Element{group}}})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, ports.ErrStartLimit.Error())
		require.Equal(t, limit, runs)
		require.Len(t, w.Ints("SELECT id FROM surfin_step_execution WHERE name = 's'"), limit)
	})
}
