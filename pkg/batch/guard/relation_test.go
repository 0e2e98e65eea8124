package guard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAStateIsBeforeOrAfterTheTargetOfAMoveOrUnrelated(t *testing.T) {
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
	for _, c := range []struct {
		at, target state
		want       relation
	}{
		{created, reserved, early}, {reserved, created, early}, {reserved, reserved, passed},
		{created, sent, early}, {paid, reserved, passed}, {paid, created, passed}, {paid, paid, passed},
		{paid, lost, unrelated}, {sent, created, rests}, {sent, sent, rests}, {lost, paid, rests}, {elsewhere, paid, unrelated},
	} {
		require.Equal(t, c.want, moves[state](m.Moves()).relation(c.at, c.target), c)
	}
}
