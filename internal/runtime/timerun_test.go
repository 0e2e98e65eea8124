package runtime_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func (p *planned) runFor(at string) *taskports.TimeRun {
	p.Helper()
	run, err := p.runs.RunTime(p.Context(), runtime.TimeRunRequest{Job: "each", Time: at, By: runtime.By{Actor: "ada", Reason: "ticket 7"}})
	require.NoError(p, err)
	return run
}

// Rule OP18.
func TestATimeThatIsRunByHandHasOneTask(t *testing.T) {
	eachOffice(t, func(o *office) {
		hourly := minutely
		hourly.Cron = "0 * * * *"
		p := o.planned(hourly, time.Minute)
		const at = "2026-11-27T03:00"
		dry, err := p.runs.RunTime(t.Context(), runtime.TimeRunRequest{Job: "each", Time: at, DryRun: true})
		require.NoError(t, err)
		require.Zero(t, dry.ID)
		require.Empty(t, p.keys())
		require.Equal(t, map[string]string{"at": at}, dry.Params)

		runs := make([]*taskports.TimeRun, 6)
		var pressing sync.WaitGroup
		for i := range runs {
			pressing.Go(func() {
				var err error
				runs[i], err = p.runs.RunTime(context.WithoutCancel(t.Context()), runtime.TimeRunRequest{Job: "each", Time: at, By: runtime.By{Actor: "ada", Reason: "ticket 7"}})
				if err != nil {
					t.Error(err)
				}
			})
		}
		pressing.Wait()
		applied := 0
		for _, run := range runs {
			require.NotNil(t, run)
			require.Equal(t, runs[0].ID, run.ID)
			if run.Applied {
				applied++
			}
		}
		require.Equal(t, 1, applied)
		require.Equal(t, []string{at}, p.keys())
		acts, _, err := p.definitions.Acts(t.Context(), ports.ActFilter{Verb: ports.VerbRun, JobName: "each"})
		require.NoError(t, err)
		require.Len(t, acts, 1)
		require.Equal(t, "ada", acts[0].Actor)
		require.Equal(t, "for 2026-11-27T03:00, task 1: ticket 7", acts[0].Detail)

		_, _, err = p.definitions.EnableDefinition(t.Context(), "each", false, "ada")
		require.NoError(t, err)
		require.True(t, p.runFor("2026-11-27T03:01").Applied, "not due then, and disabled")
		now := p.runFor("")
		require.True(t, now.Applied)
		require.WithinDuration(t, time.Now(), now.At, 2*time.Minute)
		for _, wrong := range []runtime.TimeRunRequest{{Job: "each", Time: "soon"}, {Job: "eech"}} {
			_, err = p.runs.RunTime(t.Context(), wrong)
			require.ErrorAs(t, err, new(*refusal.Refusal))
		}
	}, nil)
}

// The leader comes to times that were run by hand.
func TestALeaderSubmitsNoSecondTaskForATimeThatWasRunByHand(t *testing.T) {
	for _, overlap := range []string{"allow", "forbid"} {
		t.Run(overlap, func(t *testing.T) {
			eachOffice(t, func(o *office) {
				s := minutely
				s.Overlap = overlap
				p := o.planned(s, 3*time.Minute)
				first := p.want(p.began.Add(2 * time.Minute))[0]
				byHand := p.runFor(first)
				require.True(t, byHand.Due)
				if overlap == "forbid" {
					_, err := p.runs.RunTime(t.Context(), runtime.TimeRunRequest{Job: "each", Time: "2026-11-27T03:00"})
					require.ErrorContains(t, err, "its task 1 is not over")
					stop := p.leader("a")
					p.decided(stop)
					require.Equal(t, []string{first}, p.keys())
					acts, _, err := p.definitions.Acts(t.Context(), ports.ActFilter{Verb: ports.VerbLeaveOut})
					require.NoError(t, err)
					require.Len(t, acts, 1)
					require.NotContains(t, acts[0].Detail, first)
					return
				}
				until := p.decided(p.leader("a"))
				require.Equal(t, p.want(until), p.keys())
				require.Equal(t, first, o.task(task.ID(byHand.ID)).Spec.ScheduledFor)
			}, nil)
		})
	}
}
