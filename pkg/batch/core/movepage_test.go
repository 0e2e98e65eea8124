package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAMachineIsDrawnFromItsTable(t *testing.T) {
	t.Parallel()
	type state string
	m, err := core.NewMachine("light",
		core.Move[state]{Name: "on", From: []state{"OFF"}, To: "ON", Intent: core.IntentBegin, Trigger: "a switch", Prevents: "a second switch"},
		core.Move[state]{Name: "break", From: []state{"OFF", "ON"}, To: "BROKEN", Intent: core.IntentEnd},
		core.Move[state]{Name: "mend", From: []state{"BROKEN"}, To: "OFF", Intent: core.IntentTake})
	require.NoError(t, err)
	require.Equal(t, `stateDiagram-v2
    [*] --> OFF
    OFF --> ON: on
    OFF --> BROKEN: break
    ON --> BROKEN: break
    BROKEN --> OFF: mend
    BROKEN --> [*]
`, m.Diagram())
	require.Contains(t, m.Table(), "| on | OFF | ON | a switch |  | a second switch | begin |\n")
}

func TestEveryMoveOfOursSaysWhatAsksForItAndWhatItPrevents(t *testing.T) {
	t.Parallel()
	for _, move := range ports.Executions().Moves() {
		require.NotEmpty(t, move.Trigger, move.Name)
		require.NotEmpty(t, move.Prevents, move.Name)
	}
	for _, move := range taskports.Machine().Moves() {
		require.NotEmpty(t, move.Trigger, move.Name)
		require.NotEmpty(t, move.Prevents, move.Name)
	}
}
