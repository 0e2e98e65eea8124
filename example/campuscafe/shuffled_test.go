package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestShuffledEventsComeToOneEnd(t *testing.T) {
	each(t, func(s *scene) {
		way := []Trigger{StockReserveSucceeded, PaymentRequested, PaymentSucceeded, HandoverCompleted}
		run := 0
		rapid.Check(s, func(r *rapid.T) {
			run++
			before := s.number("SELECT quantity FROM stock WHERE item = 'coffee'")
			id := s.order(Created)
			all := append([]Trigger{}, way...)
			bad := rapid.SliceOfNDistinct(rapid.SampledFrom([]Trigger{CancelRequested, PaymentFailed, StockReserveFailed}), 0, 2, rapid.ID).Draw(r, "bad")
			all = append(all, bad...)
			all = append(all, rapid.SliceOfN(rapid.SampledFrom(all), 0, 4).Draw(r, "again")...)
			for i, trigger := range rapid.Permutation(all).Draw(r, "arrive") {
				key := fmt.Sprintf("%d %s", id, trigger) // the same one, sent again
				if rapid.Bool().Draw(r, "another key") {
					key = fmt.Sprintf("%s %d", key, i)
				}
				_, err := s.Receive(s.Context(), key, id, trigger)
				require.NoError(r, err)
				if rapid.Bool().Draw(r, "processed") {
					_, err := s.Process(s.Context())
					require.NoError(r, err)
				}
			}
			_, err := s.Process(s.Context())
			require.NoError(r, err)

			state, taken := s.state(id), before-s.number("SELECT quantity FROM stock WHERE item = 'coffee'")
			switch state {
			case Completed:
				require.EqualValues(r, 2, taken)
				require.Equal(r, []string{taskNotify}, s.tasksOf(id))
			case Cancelled, Failed:
				require.NotEmpty(r, bad)
				require.Zero(r, taken)
				tasks := s.tasksOf(id)
				require.Contains(r, tasks, taskRefund, "the payment came all the same")
				if len(tasks) > 1 {
					require.Equal(r, []string{taskRefund, taskReverse}, tasks)
				}
			default:
				r.Fatalf("it is %s", state)
			}
		})
		require.Positive(s, run)
	})
}

func TestTheReadmeShowsTheTable(t *testing.T) {
	t.Parallel()
	m, err := machine()
	require.NoError(t, err)
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "```mermaid\n"+m.Diagram()+"```\n\n"+m.Table())
}
