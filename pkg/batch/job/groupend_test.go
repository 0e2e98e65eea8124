package job_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// TestAGroupIsDoneWhenItsRecordsAreCommitted, whatever the COMMIT answered: a group whose
// answer is lost is done where the records of its steps say so, and else not.
func TestAGroupIsDoneWhenItsRecordsAreCommitted(t *testing.T) {
	errLost := errors.New("the answer to COMMIT is lost")
	eachScript(t, func(s *script) {
		t, manager := s.e.T, tx.NewManager(s.e.Database)
		group := func(do func(ctx context.Context, fn func(context.Context) error) error) *core.AtomicElement {
			x := s.step("x", to("y"))
			return &core.AtomicElement{
				Name: "g", Database: s.e.Database.Name(), Do: do, Next: []core.Transition{to("last")},
				Flow: core.Flow{Elements: []core.Element{x, s.step("y")}},
			}
		}
		g := group(func(ctx context.Context, fn func(context.Context) error) error {
			return manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error { return errors.Join(fn(ctx), errLost) })
		})
		j := flowOf("undone", g, s.step("last"))
		exec := s.attempt(j, "run x", "x y")
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, errLost.Error())
		g.Do = func(ctx context.Context, fn func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, fn) }
		exec = s.attempt(j, "resume x", "x y last")
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

		if s.e.Database.SingleWriter() { // the starts are in the transaction: there is no other record
			return
		}
		g = group(func(ctx context.Context, fn func(context.Context) error) error {
			return errors.Join(manager.Do(ctx, tx.Attr{}, fn), errLost)
		})
		exec = s.attempt(flowOf("done", g, s.step("last")), "run x", "x y last")
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}

// TestALaunchFromTheStartForgetsWhatIsOlder: its own attempts count, and a restart behind
// it passes what it completed itself.
func TestALaunchFromTheStartForgetsWhatIsOlder(t *testing.T) {
	eachScript(t, func(s *script) {
		t := s.e.T
		limit := 2
		b := s.step("b", to("c"))
		b.StartLimit = &limit
		j := flowOf("anew", s.step("a", to("b")), b, s.step("c"))
		s.failing("c")
		s.attempt(j, "run a", "a b c")
		s.failing("b")
		s.ran = nil
		exec, err := s.e.Launcher.With(job.Options{FromStart: true}).Run(context.Background(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, []string{"a", "b"}, s.ran)
		s.failing()
		exec = s.attempt(j, "pass a, resume b", "b c")
		require.Equal(t, core.StatusCompleted, exec.Status, "the attempt before the launch from the start does not count: %s", exec.Error)
		steps, err := s.e.Repository.LastSteps(context.Background(), exec.InstanceID, exec.AnewSince())
		require.NoError(t, err)
		require.Equal(t, 2, steps["b"].Attempts)
		require.Equal(t, steps["c"].Last.ID, steps["c"].Last.First, "it does not resume the attempt that is forgotten")
	})
}
