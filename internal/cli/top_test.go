package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestProgressIsALineForEachStepWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	percent, left := 80.0, 0.5
	views := []operator.ProgressView{{
		Execution: 2, JobName: "watched", Status: core.StatusStopping, Step: "load", Read: 8, Written: 6, Filtered: 2, PerSecond: 4,
		Percent: &percent, Left: &left, StopRequested: true, Owner: &operator.Owner{Host: "here", PID: 7}, Lease: operator.LeaseHeld,
	}}
	show := showCommands{&environment{now: func() time.Time { return time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC) }}}
	require.Equal(t, "08:30:00 execution 2, job watched, step load: 8 read, 6 written, 2 filtered, 0 skipped, 4 rows/s; 80% done, 500ms left; STOPPING (stop requested), process 7 on here\n",
		show.progressLines(views))
	views[0].Percent, views[0].Left, views[0].Partitions, views[0].PartitionsDone = nil, nil, 3, 1
	table := show.progressTable(views)
	require.Contains(t, table, " ?  ")
	require.Contains(t, table, " 1 of 3 partitions ")
}

func TestAFrameIsTakenBackAndNeverWiderOrHigherThanTheTerminal(t *testing.T) {
	t.Parallel()
	frame, lines := redraw("one\n"+strings.Repeat("wide ", 20)+"\nthree\nfour\n", 0, 10, 4)
	require.Equal(t, "one\nwide wide \nthree\n", frame)
	require.Equal(t, 3, lines)
	frame, lines = redraw("one\n", 3, 10, 4)
	require.Equal(t, "\x1b[3A\x1b[Jone\n", frame)
	require.Equal(t, 1, lines)
}

func TestALeaseIsJudgedByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	owner := func(until time.Duration, dead, lost bool) *operator.Owner {
		return &operator.Owner{Host: "there", PID: 7, LeaseUntil: now.Add(until), Dead: dead, Lost: lost}
	}
	for want, o := range map[string]*operator.Owner{
		"lease until 2026-11-22 12:00:20Z":                                                         owner(20*time.Second, false, false),
		"lease expired 40.0s ago; no process takes it over automatically":                          owner(-40*time.Second, false, true),
		"lease until 2026-11-22 11:59:20Z by the database's clock, which is behind this machine's": owner(-40*time.Second, false, false),
		"lease expired by the database's clock; no process takes it over automatically":            owner(20*time.Second, false, true),
		"which is dead; no process takes it over automatically":                                    owner(20*time.Second, true, true),
	} {
		require.Equal(t, want, wording.Lease(o, now))
	}
}
