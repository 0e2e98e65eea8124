package step_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestARepetitionBeginsWithTheContextsOfThePlan(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		rounds, fail := 0, true
		w := &work{do: func(_ context.Context, part core.Partition, c *core.StepContribution) error {
			if _, seen := c.Context.Get("seen"); seen {
				return errors.New("it has the context of the round before")
			}
			if self, _ := c.Context.Get("self"); self != part.Name {
				return fmt.Errorf("part %s has the context of %v", part.Name, self)
			}
			if err := c.Context.Put("self", "changed"); err != nil {
				return err
			}
			return c.Context.Put("seen", int64(rounds))
		}}
		first := partitioned(t, w.step(t, e, "s"), numbered(2))
		first.AllowStartIfComplete = true
		second := e.Tasklet("after", tx.Attr{}, func(_ context.Context, c *core.StepContribution) error {
			if rounds++; rounds == 1 {
				c.ExitCode = "AGAIN"
			} else if fail {
				return errors.New("no good")
			}
			return nil
		})
		second.Next = []model.Transition{{Pattern: "AGAIN", Target: model.Target{Kind: model.TargetElement, Name: "s"}}}
		j := testengine.Job("job", first, second)
		exec := e.Run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "no good")
		require.Equal(t, 2, rounds)
		fail = false
		exec = e.Run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}
