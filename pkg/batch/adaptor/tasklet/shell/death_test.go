//go:build unix

package shell

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const victimReady = "SURFIN_TEST_VICTIM_READY"

// TestRunInAProcessOfItsOwn is the victim's program.
func TestRunInAProcessOfItsOwn(t *testing.T) {
	ready := os.Getenv(victimReady)
	if ready == "" {
		return
	}
	_, err := run(context.Background(), t, config{
		Script: `trap '' HUP INT TERM; (trap '' HUP INT TERM; exec sleep 1000) & echo $$ $! > "$READY"; while :; do wait; done`,
		Env:    map[string]string{"READY": ready},
	})
	t.Fatalf("the tasklet ended: %v", err)
}

func TestTheProcessAndAllItStartedDieWithTheirParent(t *testing.T) {
	t.Parallel()
	ready := pipe(t)
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRunInAProcessOfItsOwn$")
	parent.Env = append(os.Environ(), victimReady+"="+ready)
	require.NoError(t, parent.Start())
	pids := strings.Fields(readLine(t, ready))
	require.Len(t, pids, 2)
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	for _, pid := range pids {
		gone(t, pid)
	}
}
