package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// from plans a restart from the element, runs it, and compares both, like attempt.
func (s *script) from(j *model.Job, element, plan, ran string) *core.JobExecution {
	s.e.T.Helper()
	ctx := context.Background()
	last, err := newestOf(ctx, s.e, j.Name)
	require.NoError(s.e.T, err)
	from, err := journal.NewFrom(ctx, s.e.Repository, j, last, element)
	require.NoError(s.e.T, err)
	planned, err := planner.NewFrom(ctx, s.e.Repository, j, last, from, nil)
	require.NoError(s.e.T, err)
	require.Equal(s.e.T, plan, certainOf(planned), "the plan")
	s.ran = nil
	exec, err := s.e.Launcher.With(job.Options{From: element, IfComplete: true}).Run(ctx, j, core.Parameters{}, nil)
	require.NoError(s.e.T, err)
	require.Equal(s.e.T, ran, strings.Join(s.ran, " "), "what ran")
	return exec
}

func certainOf(p *planner.Plan) string {
	var certain []string
	for _, e := range p.Entries {
		if e.Certainty == planner.Certain {
			certain = append(certain, string(e.Act)+" "+e.Element)
		}
	}
	return strings.Join(certain, ", ")
}

func (s *script) refused(j *model.Job, element string) *journal.FromError {
	s.e.T.Helper()
	_, err := s.e.Launcher.With(job.Options{From: element}).Run(context.Background(), j, core.Parameters{}, nil)
	var refused *journal.FromError
	require.ErrorAs(s.e.T, err, &refused)
	require.ErrorIs(s.e.T, err, journal.ErrNotFrom)
	return refused
}

func TestARestartFromAStepRunsItAndWhatFollows(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("from", s.step("a", to("b")), s.step("b", to("c")), s.step("c", to("d")), s.step("d"))
		s.failing("d")
		require.Equal(t, core.StatusFailed, s.attempt(j, "run a", "a b c d").Status)
		s.failing("c")
		exec := s.from(j, "b", "pass a, run b", "b c")
		require.Equal(t, core.StatusFailed, exec.Status)
		s.failing()
		exec = s.attempt(j, "pass a, pass b, resume c", "c d")
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Equal(t, core.StatusCompleted, s.from(j, "d", "pass a, pass b, pass c, run d", "d").Status)
		require.Equal(t, core.StatusCompleted, s.from(j, "a", "run a", "a b c d").Status)
	})
}

func TestARestartFromAStepKeepsWhatCameBefore(t *testing.T) {
	eachScript(t, func(s *script) {
		again := s.step("again", to("fails"))
		again.AllowStartIfComplete = true
		asked := 0
		d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) {
			asked++
			return "GO", nil
		}, Next: []model.Transition{upon("GO", "both")}}
		recorded := &model.FlowElement{Name: "f", AsStep: true, Next: []model.Transition{to("g")}, Flow: model.Flow{Elements: []model.Element{s.step("x")}}}
		j := flowOf("kept", again, s.step("fails", upon("*", "d")), d, splitOf("both", []model.Transition{to("f")}, s.step("l"), s.step("r")),
			recorded, groupOf(s, "z", s.step("y")), s.step("z", to("e")), s.step("e"))
		s.failing("fails", "e")
		require.Equal(t, core.StatusFailed, s.attempt(j, "run again", "again fails l r x y z e").Status)
		s.failing("z")
		const kept = "pass again, pass fails, pass l, pass r, pass f, pass y"
		require.Equal(t, core.StatusFailed, s.from(j, "z", kept+", run z", "z").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, kept+", resume z", "z e").Status)
		require.Equal(t, 1, asked)
		exec := s.from(j, "d", "pass again, pass fails, ask d", "l r x y z e")
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Equal(t, 2, asked, "a decision is an element, too")
		require.Equal(t, core.StatusCompleted, s.from(j, "f", "pass again, pass fails, pass l, pass r, run f, run x", "x y z e").Status)
	})
}

func TestADecisionBehindTheStepIsTakenAgain(t *testing.T) {
	eachScript(t, func(s *script) {
		verdict := "B"
		d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) { return verdict, nil },
			Next: []model.Transition{upon("B", "b"), upon("C", "c")}}
		j := flowOf("decided", s.step("a", to("d")), d, s.step("b", to("c")), s.step("c", to("e")), s.step("e"))
		s.failing("e")
		s.attempt(j, "run a", "a b c e")
		verdict = "C"
		s.from(j, "a", "run a", "a c e")
		verdict = "B"
		s.failing()
		require.Equal(t, core.StatusCompleted, s.from(j, "d", "pass a, ask d", "b c e").Status)
	})
}

func TestARestartFromAStepInABranch(t *testing.T) {
	eachScript(t, func(s *script) {
		inner := &model.FlowElement{Name: "f", AsStep: true, Flow: model.Flow{Elements: []model.Element{s.step("x", to("y")), s.step("y")}}}
		both := &model.SplitElement{Name: "both", Workers: 1, Next: []model.Transition{to("e")}, Branches: []model.Flow{
			{Elements: []model.Element{s.step("a", to("f")), inner}}, {Elements: []model.Element{s.step("r", to("t")), s.step("t")}},
		}}
		j := flowOf("branch", s.step("z", to("both")), both, s.step("e"))
		s.failing("r")
		require.Equal(t, core.StatusFailed, s.attempt(j, "run z", "z a x y r").Status)
		refused := s.refused(j, "y")
		require.Equal(t, []any{journal.FromBeside, "both", "r"}, []any{refused.Cause, refused.Split, refused.Open})
		s.failing("y")
		require.Equal(t, core.StatusFailed, s.from(j, "both", "pass z, run a, run r", "a x y r t").Status)
		require.Equal(t, core.StatusFailed, s.from(j, "y", "pass z, pass a, run f, pass x, run y, pass r, pass t", "y").Status)
		s.failing("e")
		require.Equal(t, core.StatusFailed, s.attempt(j, "pass z, pass a, resume f, pass x, resume y, pass r, pass t", "y e").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.from(j, "x", "pass z, pass a, run f, run x, pass r, pass t", "x y e").Status)
	})
}

func TestARestartFromAStepOfAGroupRunsTheGroup(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("group", s.step("a", to("g")), groupOf(s, "c", s.step("x", to("y")), s.step("y")), s.step("c"))
		s.failing("c")
		s.attempt(j, "run a", "a x y c")
		s.failing("y")
		require.Equal(t, core.StatusFailed, s.from(j, "y", "pass a, run x", "x y").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, resume x", "x y c").Status)
	})
}

func TestARestartFromAStepOfALoopBeginsWithItsLastVisit(t *testing.T) {
	eachScript(t, func(s *script) {
		rounds := 0
		d := &model.DecisionElement{Name: "d", Decide: func(context.Context, *core.View) (string, error) {
			if rounds++; rounds%2 == 1 {
				return "AGAIN", nil
			}
			return "ON", nil
		}, Next: []model.Transition{upon("AGAIN", "b"), upon("ON", "e")}}
		j := flowOf("loop", s.step("a", to("b")), s.step("b", to("c")), s.step("c", to("d")), d, s.step("e"))
		s.failing("e")
		s.attempt(j, "run a", "a b c b c e")
		s.failing("c")
		require.Equal(t, core.StatusFailed, s.from(j, "c", "pass a, pass b, run c", "c").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, pass b, resume c", "c b c e").Status)
	})
}

func TestAWayBeforeTheStepIsNotLookedFor(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("jumped", s.step("a", stopAt("*", "c")), s.step("b"), s.step("c", to("d")), s.step("d"))
		require.Equal(t, core.StatusStopped, s.attempt(j, "run a", "a").Status)
		s.failing("d")
		require.Equal(t, core.StatusFailed, s.attempt(j, "pass a, run c", "c d").Status)
		s.failing("c")
		require.Equal(t, core.StatusFailed, s.from(j, "c", "pass a, run c", "c").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, resume c", "c d").Status)
	})
}

func TestARestartFromAStepThatCannotBeIsRefused(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("refused", s.step("a", to("b")), s.step("b", to("c")), s.step("c"))
		j.Finally = model.Flow{Elements: []model.Element{s.step("last")}}
		s.failing("b")
		s.attempt(j, "run a, finally last", "a b last")
		for element, want := range map[string]string{
			"nowhere": "job refused has no step or element nowhere: it has a, b, c; restart a step of a child job with the execution of that job",
			"c":       "job refused: no attempt that counts has reached c: a plain restart reaches it by itself; a restart can begin at a, b",
			"last":    "job refused: last is in `finally`, which runs at the end of every execution; a restart can begin at a, b",
		} {
			require.EqualError(t, s.refused(j, element), want)
		}
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass a, resume b, finally last", "b c last").Status)
		_, err := s.e.Launcher.With(job.Options{From: "b"}).Run(context.Background(), j, core.Parameters{}, nil)
		require.ErrorAs(t, err, new(*ports.InstanceCompleteError))
		s.from(j, "b", "pass a, run b, finally last", "b c last")
		_, err = s.e.Launcher.With(job.Options{From: "c", IfComplete: true}).Run(context.Background(), flowOf("none", s.step("c")), core.Parameters{}, nil)
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestTheStartLimitCountsFromTheRestart(t *testing.T) {
	eachScript(t, func(s *script) {
		once := 1
		b := s.step("b", to("c"))
		b.StartLimit = &once
		j := flowOf("limited", s.step("a", to("b")), b, s.step("c"))
		s.failing("b")
		s.attempt(j, "run a", "a b")
		s.failing()
		require.Equal(t, core.StatusFailed, s.attempt(j, "pass a", "").Status)
		require.Equal(t, core.StatusCompleted, s.from(j, "b", "pass a, run b", "b c").Status)
	})
}

func TestOnlyTheNewestAttemptIsRestartedFromAStep(t *testing.T) {
	eachScript(t, func(s *script) {
		j := flowOf("raced", s.step("a", to("b")), s.step("b"))
		s.failing("b")
		first := s.attempt(j, "run a", "a b")
		s.attempt(j, "pass a, resume b", "b")
		_, err := s.e.Repository.Launch(context.Background(), ports.LaunchRequest{
			JobName: j.Name, Restartable: true, Owner: core.Owner{Host: "h", PID: 1}, Lease: job.DefaultLease, From: &ports.LaunchFrom{After: first.ID},
		})
		var newer *ports.NotNewestError
		require.ErrorAs(t, err, &newer)
		require.Equal(t, first.ID, newer.Execution)
	})
}

func TestAPlanOfARandomFlowFromAnElementIsWhatTheRestartDoes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		began := 0
		for seed := range flowsOn(url, 6, 2, 20) {
			for _, wild := range []bool{false, true} {
				f := &froms{random: rand.New(rand.NewPCG(uint64(seed), 5))}
				require.NoError(t, plannedCase(t.Context(), e, uint64(1_000_000+seed), wild, f), "seed %d, wild: %v", seed, wild)
				began += f.began
			}
		}
		require.Positive(t, began)
	})
}

type froms struct {
	random *rand.Rand
	began  int
}

func (f *froms) next(ctx context.Context, reads journal.Repository, j *model.Job, last *core.JobExecution) (*journal.From, string, error) {
	if f == nil || last == nil || f.random.IntN(3) > 0 {
		return nil, "", nil
	}
	_, err := journal.NewFrom(ctx, reads, j, last, "nowhere")
	var refused *journal.FromError
	switch {
	case !errors.As(err, &refused):
		return nil, "", err
	case len(refused.Reached) == 0:
		return nil, "", nil
	}
	element := refused.Reached[f.random.IntN(len(refused.Reached))]
	from, err := journal.NewFrom(ctx, reads, j, last, element)
	if errors.As(err, &refused) && refused.Cause == journal.FromBeside {
		return nil, "", nil
	}
	f.began++
	return from, element, err
}

func TestAProcessThatDiesInARestartFromAStep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		flow := func(w *weather) model.Flow {
			a, b, c := w.step("a"), w.step("b"), w.step("c")
			split := &model.SplitElement{Name: "s", Workers: 1, Branches: []model.Flow{{Elements: []model.Element{a, b}}, {Elements: []model.Element{w.step("x")}}}}
			w.lead(a, "b")
			w.lead(split, "c")
			return model.Flow{Elements: []model.Element{split, c}}
		}
		each := 1
		if !onSQLite(url) {
			each = 3
		}
		deaths := 0
		for write := 1; write < 12; write += each {
			for _, after := range []bool{false, true} {
				w := &weather{Engine: e, name: fmt.Sprintf("from %d %v", write, after)}
				j := w.ofFlow(flow)
				exec, err := w.launch(j)
				require.NoError(t, err)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

				w.from, w.killAt = "b", &killAt{write: write, after: after}
				_, err = w.launch(j)
				if w.killAt.happened {
					require.Error(t, err)
					deaths++
				}
				w.from, w.killAt = "", nil
				last, err := newestOf(t.Context(), e, w.name)
				require.NoError(t, err)
				exec, err = w.launch(j)
				if !errors.As(err, new(*ports.InstanceCompleteError)) {
					require.NoError(t, err)
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				}
				want := []int64{1, 1, 1, 1}
				if last.Attempt > 1 { // it was launched
					want = []int64{1, 2, 1, 2}
				}
				require.Equal(t, want, []int64{w.rows("a"), w.rows("b"), w.rows("x"), w.rows("c")}, w.name)
			}
		}
		require.Greater(t, deaths, 14/each)
	})
}
