package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestProgressIsALogLineEveryFewSeconds(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	n := newEventLog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), nil, func() time.Time { return now })
	ctx := context.Background()
	n.Observe(ctx, core.StepStarted{Step: core.StepExecution{ID: 7, Name: "load"}})
	for second := range int64(12) {
		now = now.Add(time.Second)
		n.Observe(ctx, core.ChunkCommitted{Step: "load", StepID: 7, Counters: core.Counters{Read: 1000 * (second + 1), Write: 900 * (second + 1), Commit: second + 1}})
	}
	n.Observe(ctx, core.ChunkCommitted{Step: "other", StepID: 8})
	n.Observe(ctx, core.StepEnded{Step: core.StepExecution{ID: 7, Name: "load", Status: core.StatusCompleted}})
	require.Equal(t, `level=INFO msg="step started" step=load
level=INFO msg=committed step=load read=5000 written=4500 skipped=0 rows_per_second=1000
level=INFO msg=committed step=load read=10000 written=9000 skipped=0 rows_per_second=1000
level=INFO msg="step ended" step=load status=COMPLETED
`, log.String())
}

func TestOddEventsAreLoggedAtTheirLevel(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	n := newEventLog(newLogger(&log, "debug", "text"), nil, time.Now)
	for _, e := range []core.Event{
		core.Transitioned{Machine: "execution", ID: 3, To: core.StatusCompleted, Current: core.StatusFailed, Answer: core.Rejected, Trigger: "end"},
		core.Transitioned{Machine: "execution", ID: 4, To: core.StatusCompleted, Current: core.StatusCompleted, Answer: core.Duplicate, Trigger: "end"},
		core.OwnerLost{Execution: 3},
		core.HeartbeatFailed{Execution: 3, Err: errors.New("gone")},
		core.SeriesNotStored{Execution: 3, Err: errors.New("gone")},
		core.ChunkRolledBack{Step: "load", Err: errors.New("a\n\tb")},
		core.JobEnded{Execution: core.JobExecution{ID: 3, JobName: "j", Status: core.StatusFailed}},
	} {
		n.Observe(context.Background(), e)
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		lines = append(lines, line[len("2006-01-02 15:04:05 "):])
	}
	require.Equal(t, []string{
		"WARN  transition machine=execution id=3 to=COMPLETED current=FAILED answer=rejected trigger=end\n",
		"DEBUG transition machine=execution id=4 to=COMPLETED current=COMPLETED answer=duplicate trigger=end\n",
		"ERROR another process took over the execution: this one stops and commits nothing more execution=3\n",
		"WARN  a heartbeat did not reach the database execution=3 error=gone\n",
		"WARN  counters over time could not be stored: tried again with each heartbeat execution=3 error=gone\n",
		"DEBUG chunk rolled back step=load error=\"a; b\"\n",
		"DEBUG job ended job=j execution=3 status=FAILED\n",
	}, lines)
}

func TestLogLinesKeepGroupsAndAttributes(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l := newLogger(&log, "info", "text").With("job", "j").WithGroup("g").With("a", 1)
	l.Debug("not shown")
	l.Info("two\nlines", "level", "mine")
	require.Equal(t, "INFO  two; lines job=j g.a=1 g.level=mine\n", log.String()[len("2006-01-02 15:04:05 "):])

	log.Reset()
	newLogger(&log, "info", "json").Info("x", "a", 1)
	require.Contains(t, log.String(), `"msg":"x","a":1}`)
}

func TestSpeedIsThatOfTheLastMoments(t *testing.T) {
	t.Parallel()
	start := time.Now()
	s := rateMeter{at: start}
	require.Zero(t, s.measure(start, 0))
	require.InDelta(t, 1000, s.measure(start.Add(100*time.Millisecond), 100), 1, "since the start")
	require.InDelta(t, 1000, s.measure(start.Add(time.Second), 1000), 1)
	require.InDelta(t, 1000, s.measure(start.Add(1100*time.Millisecond), 5000), 1, "too early for another measurement")
	require.InDelta(t, 9000, s.measure(start.Add(2*time.Second), 10000), 1)
}

func TestProgressIsOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "load  1,000 read · 900 written · 100 filtered · 5,000 rows/s · 1:05",
		progressText("load", core.Counters{Read: 1000, Write: 900, Filter: 100}, 5000, 65*time.Second))
}

func TestStatementsThatReturnRowsAreRecognised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"select 1": true, " -- why\n/* a\nb */ (SELECT 1)": true, "with x as (select 1) select * from x": true,
		"pragma table_info(a)": true, "insert into a values (1) returning id": true,
		"insert into a values (1)": false, "selection": false, "create table selected (a int)": false, "": false,
	} {
		require.Equal(t, want, returnsRows(text), text)
	}
}

func TestEachJoinedErrorHasItsLine(t *testing.T) {
	t.Parallel()
	err := errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c")))
	require.Len(t, splitJoined(err), 3)
}
