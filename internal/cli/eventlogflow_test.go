package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func told(log *bytes.Buffer) []string {
	var lines []string
	for line := range strings.Lines(log.String()) {
		lines = append(lines, strings.TrimSuffix(line[len("2006-01-02 15:04:05 "):], "\n"))
	}
	return lines
}

func TestWhereTheFlowWentIsTold(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	n := newEventLog(newLogger(&log, "debug", "text"), nil, time.Now)
	for _, e := range []core.Event{
		core.Decided{Execution: 3, JobName: "j", Element: "way", Verdict: "LEFT"},
		core.Decided{Execution: 3, JobName: "j", Element: "way", Verdict: "LEFT", Kept: true},
		core.ElementSkipped{Execution: 3, Element: "late", Condition: "steps.one.read > 0"},
		core.GateChecked{Execution: 3, JobName: "j", Step: "one", Gate: "read > 0: holds", Held: true},
		core.GateChecked{Execution: 3, JobName: "j", Gate: "steps.one.read > 0: does not hold"},
		core.StopAsked{Execution: 3},
		core.StopFailed{Execution: 3, Step: "one", Err: errors.New("not\nnow")},
		core.CloseFailed{Execution: 3, Step: "one", Err: errors.New("jammed")},
		core.ListenerFailed{Execution: 3, Step: "one", Err: errors.New("deaf")},
	} {
		n.Observe(context.Background(), e)
	}
	require.Equal(t, []string{
		"INFO  decided element=way verdict=LEFT",
		"INFO  decision kept from an earlier attempt element=way verdict=LEFT",
		"INFO  passed by: its condition does not hold element=late when=\"steps.one.read > 0\"",
		"DEBUG what was expected holds step=one gate=\"read > 0: holds\"",
		"WARN  what was expected does not hold job=j gate=\"steps.one.read > 0: does not hold\"",
		"INFO  a stop was asked for: stopping once the chunk in hand is committed execution=3",
		"WARN  a tasklet cannot be stopped: it is waited for execution=3 step=one error=\"not; now\"",
		"WARN  a component did its work, and could not be closed step=one error=jammed",
		"WARN  a listener failed when it was called with an error step=one error=deaf",
	}, told(&log))
}

func TestAThousandPartitionsAreOneStepInTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	n := newEventLog(newLogger(&log, "info", "text"), nil, func() time.Time { return now })
	ctx := context.Background()
	n.Observe(ctx, core.StepStarted{Step: core.StepExecution{ID: 1, Name: "load"}})
	for i := range 1000 {
		part := core.StepExecution{ID: core.StepExecutionID(10 + i), Name: fmt.Sprintf("load:%d", i)}
		n.Observe(ctx, core.StepStarted{Step: part})
		part.Counters = core.Counters{Read: 10, Write: 9, Commit: 1}
		if i == 500 {
			now = now.Add(logInterval)
		}
		n.Observe(ctx, core.ChunkCommitted{Step: part.Name, StepID: part.ID, Counters: part.Counters})
		part.Status = core.StatusCompleted
		if i%100 == 0 {
			part.Status, part.Error = core.StatusFailed, "broken"
		}
		n.Observe(ctx, core.StepEnded{Step: part})
	}
	n.Observe(ctx, core.StepEnded{Step: core.StepExecution{ID: 1, Name: "load", Status: core.StatusFailed, Error: "10 of 1000 partitions", Counters: core.Counters{Read: 10_000, Write: 9_000}}})
	lines := told(&log)
	require.Len(t, lines, 3+maxPartWarnings, "%v", lines)
	require.Equal(t, "INFO  step started step=load", lines[0])
	require.Contains(t, lines, "WARN  partition ended partition=load:0 status=FAILED read=10 written=9 error=broken")
	require.Contains(t, lines, "INFO  committed step=load read=5010 written=4509 skipped=0 rows_per_second=1002")
	require.Equal(t, "ERROR step ended step=load status=FAILED read=10000 written=9000 partitions=\"990 COMPLETED, 10 FAILED\" error=\"10 of 1000 partitions\"", lines[len(lines)-1])
	require.Empty(t, n.running)
	require.Empty(t, n.parts)
}

func TestWhatPartitionsDidAddsUpWhateverTheOrderOfTheirNews(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &partsProgress{counters: map[core.StepExecutionID]core.Counters{}}
		latest := map[core.StepExecutionID]core.Counters{}
		for range rapid.IntRange(0, 50).Draw(t, "news") {
			id := core.StepExecutionID(rapid.IntRange(1, 5).Draw(t, "partition"))
			c := latest[id].Add(core.Counters{Read: rapid.Int64Range(0, 9).Draw(t, "read"), WriteSkip: rapid.Int64Range(0, 2).Draw(t, "skips"), Commit: 1})
			latest[id] = c
			p.add(id, c)
		}
		var want core.Counters
		for _, c := range latest {
			want = want.Add(c)
		}
		require.Equal(t, want, p.total)
	})
}

func TestAJobInsideOfAJobLeavesTheSummaryAlone(t *testing.T) {
	t.Parallel()
	n := newEventLog(newLogger(&bytes.Buffer{}, "info", "text"), nil, time.Now)
	for _, e := range []core.Event{
		core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "outer"}},
		core.StepPassed{Step: core.StepExecution{ID: 1, JobName: "outer", Name: "first"}},
		core.JobStarted{Execution: core.JobExecution{ID: 2, JobName: "inner"}},
		core.StepPassed{Step: core.StepExecution{ID: 2, JobName: "inner", Name: "its own"}},
	} {
		n.Observe(context.Background(), e)
	}
	require.Len(t, n.passed, 1)
	require.Equal(t, "first", n.passed[0].Name)
}

func TestAgesAndMomentsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"90d": 90 * day, "2w": 14 * day, "36h": 36 * time.Hour, "0s": 0, "15m": 15 * time.Minute} {
		got, err := parseAge("--older-than", text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, wrong := range []string{"", "d", "-1d", "1.5d", "soon", "-3h", "999999999999d"} {
		_, err := parseAge("--older-than", wrong)
		require.ErrorContains(t, err, "a duration such as 90d, 2w, 36h or 15m is expected")
	}
	for text, want := range map[string]time.Time{
		"2026-11-20": time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), "2026-11-20T08:30": time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		"2026-11-20T08:30:00+01:00": time.Date(2026, 11, 20, 7, 30, 0, 0, time.UTC), "2026-11-20 08:30:00Z": time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		"1d": now.Add(-day),
	} {
		got, err := parseMoment("--since", text, now)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := parseMoment("--since", "yesterday", now)
	require.ErrorContains(t, err, "how long ago")
}
