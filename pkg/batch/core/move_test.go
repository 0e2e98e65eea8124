package core_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTheTableOfMovesHasOneAnswerForEveryStateAndMove(t *testing.T) {
	t.Parallel()
	m := ports.Executions()
	for _, current := range core.Statuses() {
		for _, move := range m.Moves() {
			legal := core.Rejected
			if slices.Contains(move.From, current) {
				legal = core.Applied
			}
			about := fmt.Sprintf("%s from %s", move.Name, current)
			require.Equal(t, legal, m.Answer(move.Name, 2, current, core.Mark{}), about)
			require.Equal(t, legal, m.Answer(move.Name, 2, current, core.Mark{Move: move.Name, Epoch: 1}), "%s: made in another epoch", about)
			require.Equal(t, legal, m.Answer(move.Name, 2, current, core.Mark{Move: "another", Epoch: 2}), "%s: another move was made", about)
			require.Equal(t, core.Duplicate, m.Answer(move.Name, 2, current, core.Mark{Move: move.Name, Epoch: 2}), about)
		}
		require.Equal(t, core.Rejected, m.Answer("no such move", 1, current, core.Mark{}))
		require.Equal(t, core.Rejected, m.Answer("", 1, current, core.Mark{}))
	}
}

func TestTheTableOfMovesIsInOrder(t *testing.T) {
	t.Parallel()
	_, err := core.NewMachine("execution", ports.Executions().Moves()...)
	require.NoError(t, err)
	for _, to := range core.Statuses() {
		move := ports.MoveTo(to)
		require.Equal(t, to, move.To)
		if to == core.StatusStarting || to == core.StatusParked {
			require.Empty(t, move.From, "an owner has no such move")
			continue
		}
		require.Equal(t, ports.Executions().Move(move.Name), move)
	}
	for _, move := range ports.Executions().Moves() {
		for _, from := range move.From {
			if from.IsOver() {
				require.Contains(t, []string{ports.MoveAbandon, ports.MoveSettle}, move.Name, "work that is over stays over")
			}
		}
	}
}

func TestAMoveInACycleIsADuplicateOnlyWhereItWasTheLastOne(t *testing.T) {
	t.Parallel()
	type state string
	_, err := core.NewMachine("bad", core.Move[state]{Name: "a", From: []state{"x"}, To: "x"}, core.Move[state]{Name: "a"})
	require.ErrorContains(t, err, "move a leads from x to x")
	require.ErrorContains(t, err, "move a is listed twice")

	m, err := core.NewMachine("light",
		core.Move[state]{Name: "on", From: []state{"off"}, To: "on"},
		core.Move[state]{Name: "off", From: []state{"on"}, To: "off", Intent: core.IntentTake},
	)
	require.NoError(t, err)
	at, epoch, last := state("off"), int64(1), core.Mark{}
	move := func(name string) core.Answer {
		answer := m.Answer(name, epoch, at, last)
		if answer == core.Applied {
			at, last = m.Move(name).To, core.Mark{Move: name, Epoch: epoch}
			if m.Move(name).Intent == core.IntentTake {
				epoch++
			}
		}
		return answer
	}
	for range 3 {
		require.Equal(t, core.Applied, move("on"))
		require.Equal(t, core.Duplicate, move("on"))
		require.Equal(t, core.Applied, move("off"))
		require.Equal(t, core.Rejected, move("off"), "it was made in another epoch")
	}
}

func TestEachPairOfStatesIsJudgedAlone(t *testing.T) {
	t.Parallel()
	type state int
	const (
		created state = iota
		reserved
		paid
		sent
		lost
		elsewhere
	)
	m, err := core.NewMachine("order",
		core.Move[state]{Name: "reserve", From: []state{created}, To: reserved},
		core.Move[state]{Name: "release", From: []state{reserved}, To: created, Intent: core.IntentTake},
		core.Move[state]{Name: "pay", From: []state{reserved}, To: paid},
		core.Move[state]{Name: "send", From: []state{paid}, To: sent},
		core.Move[state]{Name: "lose", From: []state{created, reserved}, To: lost})
	require.NoError(t, err, "0 is a state")
	require.Contains(t, m.Table(), "| pay | 1 | 2 |")
	require.Contains(t, m.Diagram(), "    3 --> [*]\n")
}

func TestAnEarlierMoveIsReadFromARejection(t *testing.T) {
	t.Parallel()
	refused := core.TransitionError{Current: core.StatusCompleted, Epoch: 3, Last: core.Mark{Move: ports.MoveComplete, Epoch: 3}}
	found, mine := ports.FoundIn(fmt.Errorf("end: %w", &refused))
	require.True(t, mine)
	require.Equal(t, core.StatusCompleted, found)

	_, mine = ports.FoundIn(errors.Join(&refused, core.ErrLostOwner))
	require.False(t, mine, "another owner made it")
	other := refused
	other.Last.Epoch = 2
	_, mine = ports.FoundIn(&other)
	require.False(t, mine, "it was made in another epoch")
	_, mine = ports.FoundIn(nil)
	require.False(t, mine)
}
