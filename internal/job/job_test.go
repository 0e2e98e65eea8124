package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type script struct {
	e     *testengine.Engine
	ran   []string
	fails map[string]bool
	exits map[string]string
}

func (s *script) step(name string, next ...model.Transition) *model.StepElement {
	return s.stepIn(name, tx.Attr{}, next...)
}

func (s *script) stepIn(name string, attr tx.Attr, next ...model.Transition) *model.StepElement {
	el := s.e.Tasklet(name, attr, func(_ context.Context, c *core.StepContribution) error {
		s.ran = append(s.ran, name)
		c.ExitCode = s.exits[name]
		if s.fails[name] {
			return errors.New("told to fail")
		}
		return nil
	})
	el.Next = next
	return el
}

func on(pattern string, kind model.TargetKind, change ...func(*model.Target)) model.Transition {
	t := model.Target{Kind: kind}
	for _, c := range change {
		c(&t)
	}
	return model.Transition{Pattern: pattern, Target: t}
}

func to(name string) model.Transition {
	return on(core.ExitCompleted, model.TargetElement, func(t *model.Target) { t.Name = name })
}

func (s *script) run(j *model.Job) (*core.JobExecution, []string) {
	s.e.T.Helper()
	s.ran = nil
	exec := s.e.Run(j)
	return exec, s.ran
}

func TestARestartPassesCompletedStepsAndResumesTheFailedOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url), fails: map[string]bool{"b": true}}
		j := testengine.Job("abc", s.step("a"), s.step("b"), s.step("c"))
		exec, ran := s.run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, "step b: told to fail", exec.Error)
		require.Equal(t, []string{"a", "b"}, ran)

		s.fails = nil
		exec, ran = s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Equal(t, []string{"b", "c"}, ran)
		require.Equal(t, 2, exec.Attempt)

		_, err := s.e.Launcher.Run(context.Background(), j, core.Parameters{}, nil)
		var complete *ports.InstanceCompleteError
		require.ErrorAs(t, err, &complete)
		require.Equal(t, exec.ID, complete.Execution.ID)
	})
}

func TestAllowStartIfCompleteAndStartLimitAreKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url), fails: map[string]bool{"b": true}}
		a, b := s.step("a"), s.step("b")
		a.AllowStartIfComplete = true
		b.StartLimit = new(int)
		*b.StartLimit = 2
		j := testengine.Job("ab", a, b)
		s.run(j)
		_, ran := s.run(j)
		require.Equal(t, []string{"a", "b"}, ran)
		exec, ran := s.run(j)
		require.Equal(t, []string{"a"}, ran)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, ports.ErrStartLimit.Error())
	})
}

func TestTransitionsEndFailAndStopTheJob(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		exit := func(code string) func(*model.Target) { return func(t *model.Target) { t.Exit = code } }
		cases := []struct {
			name   string
			next   []model.Transition
			exit   string
			fails  bool
			status core.Status
			code   string
		}{
			{"end", []model.Transition{on("*", model.TargetEnd, exit("DONE"))}, "", false, core.StatusCompleted, "DONE"},
			{"end_after_failure", []model.Transition{on("FAILED", model.TargetEnd)}, "", true, core.StatusCompleted, "COMPLETED"},
			{"fail", []model.Transition{on("WITH*", model.TargetFail, exit("TOO_BAD"))}, "WITH ERRORS", false, core.StatusFailed, "TOO_BAD"},
			{"specific_wins", []model.Transition{on("*", model.TargetFail), on("COMP*", model.TargetEnd)}, "", false, core.StatusCompleted, "COMPLETED"},
			{"stop", []model.Transition{on("*", model.TargetStop)}, "", false, core.StatusStopped, "STOPPED"},
			{"no_match", []model.Transition{on("NEVER", model.TargetFail)}, "FINE", false, core.StatusCompleted, "FINE"},
		}
		for _, c := range cases {
			s := &script{e: e, exits: map[string]string{"a": c.exit}, fails: map[string]bool{"a": c.fails}}
			exec, _ := s.run(testengine.Job(c.name, s.step("a", c.next...)))
			require.Equal(t, c.status, exec.Status, c.name)
			require.Equal(t, c.code, exec.ExitCode, c.name)
		}
	})
}

func TestARestartAfterAStopTransitionGoesOnAtItsRestartPoint(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		restart := func(name string) func(*model.Target) { return func(t *model.Target) { t.Restart = name } }

		s := &script{e: e}
		j := testengine.Job("with_point", s.step("a", to("b")), s.step("b", on("*", model.TargetStop, restart("c"))), s.step("c"))
		exec, ran := s.run(j)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Equal(t, []string{"a", "b"}, ran)
		exec, ran = s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"c"}, ran)

		s = &script{e: e, exits: map[string]string{"b": "WAIT"}}
		j = testengine.Job("without_point", s.step("a", to("b")), s.step("b", on("WAIT", model.TargetStop), to("c")), s.step("c"))
		exec, ran = s.run(j)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Equal(t, []string{"a", "b"}, ran)
		s.exits = nil
		exec, ran = s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"b", "c"}, ran, "the element that stopped is asked again")
	})
}

func TestAStopIsPassedOnceItWasAcknowledgedThoughALaterStepFails(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url), fails: map[string]bool{"c": true}}
		stop := on("*", model.TargetStop, func(t *model.Target) { t.Restart = "c" })
		j := testengine.Job("job", s.step("a", to("b")), s.step("b", stop), s.step("c"))
		s.run(j)
		exec, ran := s.run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, []string{"c"}, ran)
		s.fails = nil
		exec, ran = s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"c"}, ran)
	})
}

func TestARestartPointBeforeTheStopDoesNotLoop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url)}
		stop := on("*", model.TargetStop, func(t *model.Target) { t.Restart = "a" })
		j := testengine.Job("job", s.step("a", to("b")), s.step("b", stop))
		s.run(j)
		exec, ran := s.run(j)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Equal(t, []string{"b"}, ran, "a is passed, and what stopped is asked again, once")
	})
}

func TestAStepThatFailedIsRunAgainWhereItsRestartPointLeadsBackToIt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url), fails: map[string]bool{"load": true}}
		stop := on(core.ExitFailed, model.TargetStop, func(t *model.Target) { t.Restart = "prepare" })
		j := testengine.Job("job", s.step("prepare", to("load")), s.step("load", stop, to("report")), s.step("report"))
		j.Flow.Elements[0].(*model.StepElement).AllowStartIfComplete = true
		exec, _ := s.run(j)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Equal(t, core.StatusFailed, s.e.Step(exec, "load").Status, "it is not given up")
		s.fails = nil
		exec, ran := s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"prepare", "load", "report"}, ran)
	})
}

func TestOfManyLaunchersExactlyOneRunsAnInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		const launchers = 8
		var mu sync.Mutex
		ran, refused := 0, 0
		release := make(chan struct{})
		var wg sync.WaitGroup
		testengine.New(t, url) // makes the schema
		for range launchers {
			e := testengine.New(t, url)
			wg.Go(func() {
				j := testengine.Job("one", e.Tasklet("wait", tx.Attr{Propagation: tx.NotSupported}, func(context.Context, *core.StepContribution) error {
					<-release
					return nil
				}))
				_, err := e.Launcher.Run(context.Background(), j, core.Parameters{}, nil)
				var running *ports.AlreadyRunningError
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					ran++
				case errors.As(err, &running):
					if refused++; refused == launchers-1 {
						close(release)
					}
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, ran)
		require.Equal(t, launchers-1, refused)
	})
}

func TestAStopRequestedInTheDatabaseReachesTheOwner(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		j := testengine.Job("long", e.Tasklet("wait", tx.Attr{Propagation: tx.NotSupported}, func(ctx context.Context, c *core.StepContribution) error {
			if _, err := e.Repository.RequestStop(ctx, c.Step.JobExecutionID, ports.By{Actor: "test"}); err != nil {
				return err
			}
			return nil
		}), e.Tasklet("never", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil }))
		// The second step must not begin before the heartbeat has read the flag.
		j.Flow.Elements[0] = waiting{j.Flow.Elements[0].(*model.StepElement), e}.element()
		exec := e.Run(j)
		require.Equal(t, core.StatusStopped, exec.Status)
	})
}

type waiting struct {
	inner *model.StepElement
	e     *testengine.Engine
}

func (w waiting) element() *model.StepElement {
	return &model.StepElement{Step: waitingStep{w.inner.Step}, Next: w.inner.Next}
}

type waitingStep struct{ model.Step }

func (w waitingStep) Execute(ctx context.Context, run *model.StepRun) error {
	if err := w.Step.Execute(ctx, run); err != nil {
		return err
	}
	<-run.Services.Stop.Done()
	return nil
}

func TestADeadOwnerIsTakenOverAtOnceAndALivingOneIsNot(t *testing.T) {
	t.Parallel()
	child := exec.Command("sleep", "600")
	require.NoError(t, child.Start())
	owner, err := job.CurrentOwner()
	require.NoError(t, err)
	require.False(t, job.DeadOwner(owner), "this process lives")

	other := owner
	other.PID, other.Start = child.Process.Pid, ""
	require.False(t, job.DeadOwner(other), "the child lives")
	other.Start = "1"
	require.True(t, job.DeadOwner(other), "its pid belongs to a process that started at another time")
	other.Start = ""
	require.NoError(t, child.Process.Kill())
	require.Eventually(t, func() bool { return job.DeadOwner(other) }, 10*time.Second, time.Millisecond, "a zombie is dead")
	require.Error(t, child.Wait())
	require.True(t, job.DeadOwner(other))

	other.Host = "elsewhere"
	require.False(t, job.DeadOwner(other), "of another host nothing is known")
	other.Host, other.Boot = owner.Host, "another boot"
	require.False(t, job.DeadOwner(other), "host names are not unique")
}

func TestParametersAreTypedAndEverythingWrongIsReportedTogether(t *testing.T) {
	t.Parallel()
	specs := []core.ParameterSpec{
		{Name: "year", Type: core.TypeInt, Default: int64(1990), Min: int64(1990), Max: int64(2030), Identifying: true},
		{Name: "input", Type: core.TypePath, Required: true, Identifying: true},
		{Name: "mode", Type: core.TypeString, Enum: []string{"full", "delta"}},
		{Name: "code", Type: core.TypeString, Pattern: "[A-Z]{3}"},
		{Name: "day", Type: core.TypeDate},
	}
	ps, err := job.ValidateParameters(specs, map[string]string{"input": "a.csv", "mode": "full", "code": "ABC", "day": "2026-11-21"})
	require.NoError(t, err)
	year, _ := ps.Get("year")
	require.Equal(t, int64(1990), year.Value)

	_, err = job.ValidateParameters(specs, map[string]string{"year": "1899", "mode": "all", "code": "ABCD", "day": "21.11.", "years": "1"})
	require.Error(t, err)
	for _, part := range []string{
		"parameter year: 1899 is less than 1990", "parameter input: it is required (type path)",
		`parameter mode: "all" is not allowed (allowed: full, delta)`, `parameter code: "ABCD" does not match [A-Z]{3}`,
		`parameter day: "21.11." is not a date`, "parameter years: the job has no such parameter (it has: code, day, input, mode, year)",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestALostHeartbeatDoesNotEndARunButALostOwnerDoes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		j := testengine.Job("lost", e.Tasklet("work", tx.Attr{Propagation: tx.NotSupported}, func(ctx context.Context, c *core.StepContribution) error {
			e.Exec(fmt.Sprintf("update surfin_job_execution set epoch = epoch + 1 where id = %d", c.Step.JobExecutionID))
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		_, err := e.Launcher.Run(context.Background(), j, core.Parameters{}, nil)
		require.ErrorIs(t, err, core.ErrLostOwner)
	})
}
