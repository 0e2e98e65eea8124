package runlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// queued are the lines that wait for the store: these logs have none.
func queued(l *Log, id core.JobExecutionID) []ports.LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.books[id]; b != nil {
		return b.queue
	}
	return nil
}

func inStep(l *Log) context.Context {
	ctx := l.Enter(context.Background(), core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "j"}})
	return l.Enter(ctx, core.StepStarted{Step: core.StepExecution{ID: 2, JobExecutionID: 1, Name: "s:p"}})
}

// Rule LG4.
func TestACommittedChunkAndAMoveOfARowCostNothing(t *testing.T) {
	l := New(Config{Limit: 1 << 20})
	ctx := inStep(l)
	events := []core.Event{core.ChunkCommitted{Execution: 1, Step: "s", StepID: 2}, core.Transitioned{Answer: core.Applied}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, e := range events {
			l.Observe(ctx, e)
		}
	}))
	require.Len(t, queued(l, 1), 2)
	off := New(Config{})
	require.Equal(t, context.Background(), off.Enter(context.Background(), core.JobStarted{Execution: core.JobExecution{ID: 1}}))
}

func TestAnEventOfNoExecutionBelongsToTheWorkOfItsContext(t *testing.T) {
	t.Parallel()
	l := New(Config{Limit: 1 << 20})
	refused := core.Transitioned{Machine: "order", ID: 7, To: "Paid", Current: "Sent", Answer: core.Rejected, Trigger: "pay"}
	l.Observe(inStep(l), refused)
	l.Observe(context.Background(), refused)
	lines := queued(l, 1)
	require.Len(t, lines, 3)
	require.Equal(t, []string{"transition", "s", "p"}, []string{lines[2].Event, lines[2].Step, lines[2].Part})
	require.JSONEq(t, `{"machine": "order", "id": 7, "trigger": "pay", "to": "Paid", "current": "Sent", "result": "rejected"}`, lines[2].Attributes)
}

func TestARecordIsLoggedOnceWhoeverLogsIt(t *testing.T) {
	t.Parallel()
	l := New(Config{Limit: 1 << 20})
	ctx := inStep(l)
	var text strings.Builder
	log := slog.New(Handler(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log.InfoContext(ctx, "for the log of the execution only")
	log.WarnContext(ctx, "both", "err", errors.New("x"), slog.Group("of", "a", 1), "list", []int{1, 2})
	log.WarnContext(Without(ctx), "an observer's")
	log.WarnContext(context.Background(), "of no execution")
	require.Equal(t, 3, strings.Count(text.String(), "\n"), text.String())
	lines := queued(l, 1)[2:]
	require.Len(t, lines, 2)
	require.JSONEq(t, `{"err": "x", "of": {"a": 1}, "list": [1, 2]}`, lines[1].Attributes)
}

// Rules LG1 and SE1: also where an output is cut.
func TestASecretInAnOutputIsMaskedWhereverItIs(t *testing.T) {
	t.Parallel()
	const value = "0123456789abcdefghij"
	v := secret.NewVault([]string{"SURFIN_SECRET_A=" + value}, t.TempDir(), nil)
	for _, before := range []int{0, rowBytes - 10, rowBytes, keptOutput - 10, keptOutput + 10, 3*keptOutput - 5} {
		l := New(Config{Limit: 8 << 20, Mask: v.Mask})
		out := NewOutput(inStep(l), "stdout")
		line := strings.Repeat("x", before) + value + strings.Repeat("y", keptOutput)
		for part := range strings.SplitSeq(line, "") { // byte by byte
			_, err := out.Write([]byte(part))
			require.NoError(t, err)
		}
		require.NoError(t, out.Close())
		var all strings.Builder
		for _, q := range queued(l, 1)[2:] {
			all.WriteString(q.Message + "\n")
		}
		for at := 0; at+secret.MinValue <= len(value); at++ {
			require.NotContains(t, all.String(), value[at:at+secret.MinValue], "%d", before)
		}
		require.Empty(t, l.outputs)
	}
}

// Rule LG2.
func TestPartsThatBeginAndEndAreThinnedOverAllPartsOfAStep(t *testing.T) {
	t.Parallel()
	l := New(Config{Limit: 8 << 20})
	ctx := l.Enter(context.Background(), core.JobStarted{Execution: core.JobExecution{ID: 1}})
	whole := core.StepExecution{ID: 1, JobExecutionID: 1, Name: "s"}
	l.Observe(ctx, core.StepStarted{Step: whole})
	const n = 1000
	for i := range n {
		part := core.StepExecution{ID: core.StepExecutionID(2 + i), JobExecutionID: 1, Name: fmt.Sprint("s:", i)}
		l.Observe(ctx, core.StepStarted{Step: part})
		part.Status = core.StatusCompleted
		l.Observe(ctx, core.StepEnded{Step: part})
	}
	whole.Status, whole.Error = core.StatusFailed, "it failed"
	l.Observe(ctx, core.StepEnded{Step: whole, Err: fmt.Errorf("it failed: %w", context.Canceled)})
	l.Observe(ctx, core.JobEnded{Execution: core.JobExecution{ID: 1, Status: core.StatusFailed}})
	events := map[string]int{}
	var order []string
	for _, q := range queued(l, 1) {
		events[q.Event]++
		order = append(order, q.Event)
	}
	require.Equal(t, map[string]int{"job.started": 1, "step.started": 200, "step.ended": 201, "log.thinned": 2, "cause": 2, "job.ended": 1}, events)
	require.Equal(t, []string{"step.ended", "cause", "cause", "job.ended"}, order[len(order)-4:])
	require.EqualValues(t, n+1-200+n-200, l.books[1].leftOut.Thinned)
}

func TestARingKeepsTheLastLinesWithinItsBytes(t *testing.T) {
	t.Parallel()
	r := ring{bytes: 10 * 200}
	dropped := int64(0)
	for i := range 1000 {
		dropped += r.push(ports.LogLine{Message: fmt.Sprintf("%0100d", i)})
	}
	lines := r.take()
	require.Len(t, lines, 10)
	require.EqualValues(t, 990, dropped)
	for i, line := range lines {
		require.Equal(t, fmt.Sprintf("%0100d", 990+i), line.Message)
	}
	require.Empty(t, r.take())
}
