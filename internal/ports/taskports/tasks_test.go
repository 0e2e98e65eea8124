package taskports_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestTheTransitionTableOfTasks(t *testing.T) {
	t.Parallel()
	want := map[task.State]string{
		task.Waiting:        "open>PENDING cancel_waiting>CANCELED cancel>CANCELED deadline>TIMED_OUT",
		task.Pending:        "assign>ASSIGNED claim>RUNNING redeliver>PENDING cancel>CANCELED deadline>TIMED_OUT",
		task.Assigned:       "start>RUNNING orphan>ORPHANED cancel>CANCELED deadline>TIMED_OUT",
		task.Running:        "succeed>SUCCEEDED fail>FAILED time_out>TIMED_OUT retry>RETRY_SCHEDULED lose_owner>RETRY_SCHEDULED lose_owner_for_good>TIMED_OUT cancel>CANCELED",
		task.RetryScheduled: "due>PENDING cancel>CANCELED deadline>TIMED_OUT",
		task.Orphaned:       "assign>ASSIGNED claim>RUNNING redeliver>PENDING cancel>CANCELED deadline>TIMED_OUT",
		task.Succeeded:      "",
		task.Failed:         "wait_again>WAITING rerun>PENDING rerun_later>RETRY_SCHEDULED",
		task.TimedOut:       "wait_again>WAITING rerun>PENDING rerun_later>RETRY_SCHEDULED",
		task.Canceled:       "wait_again>WAITING rerun>PENDING rerun_later>RETRY_SCHEDULED",
	}
	machine := taskports.Machine()
	for _, state := range taskports.States() {
		var got []string
		for _, m := range machine.Moves() {
			if machine.Answer(m.Name, 1, state, core.Mark{}) == core.Applied {
				got = append(got, m.Name+">"+string(m.To))
			}
		}
		require.Equal(t, want[state], strings.Join(got, " "), state)
	}
}

func TestStatesOnlyMoveForwardWithinAnEpoch(t *testing.T) {
	t.Parallel()
	machine := taskports.Machine()
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SampledFrom([]task.State{task.Waiting, task.Pending}).Draw(t, "first")
		seen := map[task.State]bool{state: true}
		for range 12 {
			var moves []core.Move[task.State]
			for _, m := range machine.Moves() {
				if m.Intent != core.IntentTake && machine.Answer(m.Name, 1, state, core.Mark{}) == core.Applied {
					moves = append(moves, m)
				}
			}
			if len(moves) == 0 {
				return
			}
			state = rapid.SampledFrom(moves).Draw(t, "move").To
			if seen[state] {
				t.Fatalf("back in %s", state)
			}
			seen[state] = true
		}
	})
}

func TestTheOutcomeOfAnError(t *testing.T) {
	t.Parallel()
	o := taskports.OutcomeOf(task.Outcome{Artifacts: []task.Artifact{task.Stderr("x")}}, errors.New("broken"))
	require.Equal(t, task.Outcome{Kind: task.OutcomeFailure, Reason: "broken", Artifacts: []task.Artifact{task.Stderr("x")}}, o)
	require.True(t, taskports.OutcomeOf(task.Outcome{}, fmt.Errorf("a: %w", exception.Fatal("op", errors.New("x")))).Fatal)
	require.False(t, taskports.OutcomeOf(task.Outcome{}, exception.Retryable("op", errors.New("x"))).Fatal)
	require.False(t, taskports.OutcomeOf(task.Outcome{}, &panics.PanicError{}).Fatal, "a panic is a failure")
	wrong := taskports.OutcomeOf(task.Outcome{Kind: "DONE"}, nil)
	require.Equal(t, task.OutcomeFailure, wrong.Kind)
	require.Contains(t, wrong.Reason, `kind: it is "DONE" (allowed: SUCCESS, FAILURE or BLOCKED)`)
}

func TestTheStateOfAGroupIsDerived(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		states map[task.State]int
		cancel bool
		want   task.GroupState
	}{
		{map[task.State]int{task.Succeeded: 2}, false, task.GroupCompleted},
		{map[task.State]int{task.Succeeded: 2, task.Pending: 1, task.Failed: 1}, false, task.GroupRunning},
		{map[task.State]int{task.Succeeded: 2, task.TimedOut: 1, task.Canceled: 1}, false, task.GroupFailed},
		{map[task.State]int{task.Succeeded: 2, task.Canceled: 1}, false, task.GroupCancelled},
		{map[task.State]int{task.Running: 1}, true, task.GroupCancelled},
	} {
		require.Equal(t, c.want, taskports.StatusOf(1, c.states, c.cancel).State)
	}
	s := taskports.StatusOf(7, map[task.State]int{task.Succeeded: 1, task.Failed: 2, task.TimedOut: 3, task.Canceled: 4}, false)
	require.Equal(t, []int{10, 1, 5, 4}, []int{s.Total, s.Succeeded, s.Failed, s.Canceled})
	require.True(t, s.IsOver())
}
