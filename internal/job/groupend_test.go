package job_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (s *script) recorded(exec *core.JobExecution) string {
	s.e.T.Helper()
	steps, err := s.e.Repository.Steps(s.e.T.Context(), exec.ID)
	require.NoError(s.e.T, err)
	var list []string
	for _, step := range steps {
		list = append(list, step.Name+" "+string(step.Status))
	}
	return strings.Join(list, ", ")
}

// Rules T6 and C10.
func TestAGroupIsDoneWhenItsRecordsAreCommitted(t *testing.T) {
	eachScript(t, func(s *script) {
		t := s.e.T
		group := func(lost func(tx.Handle) error) *model.AtomicElement {
			manager := tx.NewManager(testengine.Committing{Database: s.e.Database, Commit: testengine.OnlyCommit(1, lost)})
			x := s.step("x", to("y"))
			return &model.AtomicElement{
				Name: "g", Database: s.e.Database.Name(), Next: []model.Transition{to("last")},
				Flow: model.Flow{Elements: []model.Element{x, s.step("y")}},
				Do:   func(ctx context.Context, fn func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, fn) },
			}
		}
		j := flowOf("undone", group(testengine.LostBefore), s.step("last"))
		exec := s.attempt(j, "run x", "x y")
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, testengine.ErrLine.Error())
		require.Equal(t, "x FAILED, y FAILED", s.recorded(exec))
		exec = s.attempt(j, "resume x", "x y last")
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

		exec = s.attempt(flowOf("done", group(testengine.LostAfter), s.step("last")), "run x", "x y last")
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, "x COMPLETED, y COMPLETED, last COMPLETED", s.recorded(exec))

		s.failing("last")
		j = flowOf("continued", group(testengine.LostAfter), s.step("last"))
		require.Equal(t, core.StatusFailed, s.attempt(j, "run x", "x y last").Status)
		s.failing()
		require.Equal(t, core.StatusCompleted, s.attempt(j, "pass x, pass y, resume last", "last").Status)
	})
}

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
