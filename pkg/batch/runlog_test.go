package batch_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// logged reads the whole log of an execution, page by page, after its last line.
func logged(t *testing.T, app *batch.App, req operator.LogRequest) (lines []operator.LogLineView, page *operator.ExecutionLog) {
	t.Helper()
	require.Eventually(t, func() bool {
		page, err := app.Log(t.Context(), operator.LogRequest{Execution: req.Execution, Attempt: req.Attempt, After: operator.LogEnd, Text: "job.ended"})
		require.NoError(t, err)
		return len(page.Lines) > 0
	}, 20*time.Second, 20*time.Millisecond)
	for {
		var err error
		page, err = app.Log(t.Context(), req)
		require.NoError(t, err)
		lines = append(lines, page.Lines...)
		if !page.More {
			return lines, page
		}
		req.After = page.Next
	}
}

func ofEvent(lines []operator.LogLineView, event string) (found []operator.LogLineView) {
	for _, l := range lines {
		if l.Event == event {
			found = append(found, l)
		}
	}
	return found
}

func eventsOf(lines []operator.LogLineView) (events []string) {
	for _, l := range lines {
		events = append(events, l.Event)
	}
	return events
}

func componentLog() *slog.Logger { return slog.New(batch.LogHandler(slog.DiscardHandler)) }

// Rules LG1 and LG5.
func TestTheLogOfAnExecutionHasItsLinesCausesAndTheStackOfAPanic(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		attempts := 0
		log := componentLog().With("source", "feed").WithGroup("request")
		app, _ := app(t, url, batch.Jobs(batch.NewJob("nightly").
			Step("fetch", batch.Do(func(ctx context.Context, _ *batch.StepContribution) error {
				log.InfoContext(ctx, "asked the server", "id", 7, "took", time.Second)
				log.DebugContext(ctx, "this is below INFO")
				slog.New(slog.DiscardHandler).InfoContext(ctx, "this logger is not wrapped")
				return nil
			})).
			Step("load", batch.Do(func(context.Context, *batch.StepContribution) error {
				if attempts++; attempts == 1 {
					panic("no such thing")
				}
				return fmt.Errorf("load: %w", errors.Join(fmt.Errorf("open: %w", context.DeadlineExceeded), errors.New("other")))
			}))))
		first, err := app.Run(t.Context(), batch.RunRequest{Name: "nightly"})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, first.Status)
		lines, page := logged(t, app, operator.LogRequest{Execution: first.ID})
		require.Equal(t, []string{"job.started", "step.started", "log", "step.ended", "step.started", "step.ended", "panic.stack", "job.ended"}, eventsOf(lines))
		require.Equal(t, operator.LogLeftOut{}, page.LeftOut)
		require.EqualValues(t, len(lines), page.Stored)
		for i, l := range lines {
			require.EqualValues(t, i+1, l.Seq)
			require.WithinDuration(t, time.Now(), l.At, time.Minute)
		}
		own := lines[2]
		require.Equal(t, "asked the server", own.Message)
		require.Equal(t, "fetch", own.Step)
		require.NotZero(t, own.StepExecution)
		require.JSONEq(t, `{"source": "feed", "request.id": 7, "request.took": "1s"}`, string(own.Attributes))
		stack := lines[6]
		require.Equal(t, "ERROR", stack.Level)
		require.Contains(t, stack.Message, "panic: no such thing")
		require.Contains(t, stack.Message, "runlog_test.go")

		restarted, err := app.Restart(t.Context(), batch.RestartRequest{Execution: first.ID})
		require.NoError(t, err)
		second, err := restarted.Wait()
		require.NoError(t, err)
		lines, _ = logged(t, app, operator.LogRequest{Execution: second.ID})
		var causes []string
		for _, l := range ofEvent(lines, "cause") {
			causes = append(causes, l.Message)
		}
		require.Equal(t, []string{"open: context deadline exceeded\nother", "open: context deadline exceeded", "context deadline exceeded", "other"}, causes)
		require.Contains(t, eventsOf(lines), "step.passed")
		earlier, page := logged(t, app, operator.LogRequest{Execution: second.ID, Attempt: 1})
		require.Equal(t, first.ID, page.Execution, "every attempt keeps its own")
		require.Len(t, earlier, 8)

		filtered, err := app.Log(t.Context(), operator.LogRequest{Execution: first.ID, Step: "load", Level: "error"})
		require.NoError(t, err)
		require.Equal(t, []string{"step.ended", "panic.stack"}, eventsOf(filtered.Lines))
		back, err := app.Log(t.Context(), operator.LogRequest{Execution: first.ID, Before: 4, Limit: 2})
		require.NoError(t, err)
		require.Equal(t, []string{"step.started", "log"}, eventsOf(back.Lines))
		require.EqualValues(t, 2, back.Previous)
		tail, err := app.Log(t.Context(), operator.LogRequest{Execution: first.ID, After: operator.LogEnd, Limit: 1, Text: "NO SUCH"})
		require.NoError(t, err)
		require.Equal(t, []string{"job.ended"}, eventsOf(tail.Lines))
		for _, wrong := range []operator.LogRequest{{Execution: first.ID, Level: "loud"}, {Execution: first.ID, Limit: 501}, {Execution: first.ID, Attempt: 9}} {
			_, err = app.Log(t.Context(), wrong)
			require.ErrorAs(t, err, new(*operator.RequestError))
		}
		_, err = app.Log(t.Context(), operator.LogRequest{Execution: 99})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

// Rule LG2.
func TestOfAThousandRollbacksTheFirstAndTheLastHundredAreLogged(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		tries := 0
		app, dir := app(t, url, batch.Tasklet("flaky", func() core.Tasklet {
			return batch.TaskletFunc(func(context.Context, *batch.StepContribution) error {
				if tries++; tries <= 1000 {
					return fmt.Errorf("try %d: %w", tries, os.ErrDeadlineExceeded)
				}
				return nil
			})
		}))
		var text strings.Builder
		text.WriteString("id\n")
		for i := range 1000 {
			fmt.Fprintf(&text, "%d\n", i)
		}
		write(t, dir, "in.csv", text.String())
		file := write(t, dir, "job.yaml", `
job: load
flow:
- step: wait
  tasklet: {flaky: {}}
  retry: {limit: 1000, errors: [timeout], backoff: {initial: 1ms, max: 1ms}}
- step: create
  tasklet: {sql: "create table picky (id int check (id < 0))"}
- step: load
  chunk:
    size: 1
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {table: picky}
    skip: {limit: 1000, errors: [constraint]}
`)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		rolled := stepsOf(t, app, exec)["load"].Counters.Rollback
		require.GreaterOrEqual(t, rolled, int64(1000))
		lines, page := logged(t, app, operator.LogRequest{Execution: exec.ID})
		for event, n := range map[string]int64{"step.retried": 1000, "chunk.rolled_back": rolled} {
			kept := ofEvent(lines, event)
			require.Len(t, kept, 200, event)
			i := 0
			for lines[i].Event != "log.thinned" || !strings.Contains(lines[i].Message, event) {
				i++
			}
			require.Equal(t, event, lines[i-1].Event)
			require.Equal(t, event, lines[i+1].Event)
			require.Equal(t, fmt.Sprintf("%d lines of %s are left out here, between the first and the last 100", n-200, event), lines[i].Message)
		}
		retried := ofEvent(lines, "step.retried")
		require.Contains(t, string(retried[99].Attributes), "try 100:")
		require.Contains(t, string(retried[100].Attributes), "try 901:")
		require.Equal(t, operator.LogLeftOut{Repeated: 800 + rolled - 200}, page.LeftOut)
	})
}

// Rule LG1.
func TestBothOutputsOfAProcessAreLoggedWithTheirBeginAndEnd(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		app, dir := app(t, url)
		file := write(t, dir, "job.yaml", `
job: print
flow:
- step: print
  tasklet: {shell: {script: "awk 'BEGIN { for (i = 0; i < 128000; i++) printf \"line %010d\\n\", i }'; echo bad >&2"}}
`)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		lines, _ := logged(t, app, operator.LogRequest{Execution: exec.ID, Step: "print"})
		var size, between int
		var all []string
		for _, l := range ofEvent(lines, "output") {
			switch {
			case strings.Contains(string(l.Attributes), "left_out_bytes"):
				_, err := fmt.Sscanf(l.Message, "%d bytes of stdout are left out here", &between)
				require.NoError(t, err)
			case strings.Contains(string(l.Attributes), `"stdout"`):
				require.LessOrEqual(t, len(l.Message), 9<<10)
				size += len(strings.Trim(l.Message, "…")) + 1
				all = append(all, l.Message)
			default:
				require.Equal(t, "bad", l.Message)
			}
		}
		const whole = 128000 * 16
		require.Equal(t, whole-2*(256<<10), between)
		require.InDelta(t, 2*(256<<10), size, 4)
		require.True(t, strings.HasPrefix(all[0], "line 0000000000\nline 0000000001\n"))
		require.True(t, strings.HasSuffix(all[len(all)-1], "\nline 0000127999"))
	})
}

// Rule LG3.
func TestALogIsBoundedAndStillHasItsEnd(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		for _, limit := range []int64{64 << 10, -1} {
			s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url}})
			require.NoError(t, err)
			s.Log.ExecutionBytes = limit
			log := componentLog()
			app, err := batch.New(t.Context(), s, batch.Log(nil), batch.Jobs(batch.NewJob("chatty").Step("talk", batch.Do(func(ctx context.Context, _ *batch.StepContribution) error {
				for i := range 5000 {
					log.InfoContext(ctx, fmt.Sprintf("line %d", i))
				}
				panic("at last")
			}))))
			require.NoError(t, err)
			exec, err := app.Run(t.Context(), batch.RunRequest{Name: "chatty", FromStart: limit < 0})
			require.NoError(t, err)
			require.NoError(t, app.Close(t.Context()))
			reader, _ := reopened(t, url)
			page, err := reader.Log(t.Context(), operator.LogRequest{Execution: exec.ID, After: operator.LogEnd})
			require.NoError(t, err)
			if limit < 0 {
				require.Empty(t, page.Lines)
				continue
			}
			lines, _ := logged(t, reader, operator.LogRequest{Execution: exec.ID})
			require.LessOrEqual(t, page.Bytes, limit)
			require.Greater(t, page.LeftOut.Size, int64(4000))
			kept := ofEvent(lines, "log")
			require.EqualValues(t, 5000, int64(len(kept))+page.LeftOut.Size)
			require.Equal(t, "line 0", kept[0].Message)
			require.Equal(t, "line 4999", kept[len(kept)-1].Message)
			require.Len(t, ofEvent(lines, "log.bound"), 1)
			require.Equal(t, []string{"panic.stack", "job.ended"}, []string{ofEvent(lines, "panic.stack")[0].Event, lines[len(lines)-1].Event})
		}
	})
}

func reopened(t *testing.T, url string) (*batch.App, string) {
	t.Helper()
	return app(t, url, batch.Log(nil))
}

// Rule LG5.
func TestPurgeDeletesLogs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		log := componentLog()
		app, _ := app(t, url, batch.Jobs(batch.NewJob("nightly").Step("talk", batch.Do(func(ctx context.Context, _ *batch.StepContribution) error {
			for i := range 12_000 {
				log.InfoContext(ctx, fmt.Sprintf("line %d", i))
			}
			return nil
		}))))
		exec, err := app.Run(t.Context(), batch.RunRequest{Name: "nightly"})
		require.NoError(t, err)
		lines, _ := logged(t, app, operator.LogRequest{Execution: exec.ID})
		require.Greater(t, len(lines), 10_000, "more than one transaction deletes")
		_, err = app.Purge(t.Context(), batch.PurgeRequest{EndedBefore: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		db, err := app.Databases.Database("")
		require.NoError(t, err)
		for _, table := range []string{"surfin_log_line", "surfin_execution_log", "surfin_job_execution"} {
			var n int
			require.NoError(t, scalar(t, db.Conn(), "SELECT count(*) FROM "+table, &n))
			require.Zero(t, n, table)
		}
	})
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func scalar(t *testing.T, db querier, text string, into any) error {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it is read
	if !rows.Next() {
		return errors.Join(errors.New("no row"), rows.Err())
	}
	return errors.Join(rows.Scan(into), rows.Err())
}

// Rule LG4.
func TestLinesWaitForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, testdb.Postgres(t))
	log := componentLog()
	app, _ := app(t, proxy.URL(), batch.Jobs(batch.NewJob("nightly").Step("talk", batch.TaskletOf(func(ctx context.Context, _ *batch.StepContribution) error {
		log.InfoContext(ctx, "before")
		time.Sleep(1500 * time.Millisecond)
		proxy.Cut()
		for i := range 1000 {
			log.InfoContext(ctx, fmt.Sprintf("away %d", i))
		}
		time.Sleep(2500 * time.Millisecond)
		proxy.Heal()
		return nil
	}, batch.NoTransaction()))))
	exec, err := app.Run(t.Context(), batch.RunRequest{Name: "nightly"})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	lines, page := logged(t, app, operator.LogRequest{Execution: exec.ID})
	own := ofEvent(lines, "log")
	require.Len(t, own, 1001, "each line once")
	require.Equal(t, "away 999", own[1000].Message)
	require.Zero(t, page.LeftOut.Lost)
}

// Rule LG4.
func TestALogThatCannotBeStoredSlowsNothingAndIsReported(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	var lost core.LogLost
	log := componentLog()
	app, _ := app(t, url, batch.Observe(core.ObserverFunc(func(_ context.Context, e core.Event) {
		if l, is := e.(core.LogLost); is {
			lost = l
		}
	})), batch.Jobs(batch.NewJob("nightly").Step("talk", batch.Do(func(ctx context.Context, _ *batch.StepContribution) error {
		for i := range 20 {
			log.InfoContext(ctx, fmt.Sprintf("line %d %s", i, strings.Repeat("x", 100)))
		}
		return nil
	}))))
	exec, err := app.Run(t.Context(), batch.RunRequest{Name: "nightly"})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status)
	db, err := app.Databases.Database("")
	require.NoError(t, err)
	logged(t, app, operator.LogRequest{Execution: exec.ID})
	_, err = db.Conn().ExecContext(t.Context(), "DROP TABLE surfin_log_line")
	require.NoError(t, err)
	again, err := app.Run(t.Context(), batch.RunRequest{Name: "nightly", Again: true})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, again.Status)
	began := time.Now()
	require.NoError(t, app.Close(t.Context()))
	require.Less(t, time.Since(began), 15*time.Second)
	require.Equal(t, again.ID, lost.Execution)
	require.EqualValues(t, 24, lost.Lines)
}

func remoteJob(t *testing.T) (string, []fx.Option) {
	t.Helper()
	log := componentLog()
	options := []fx.Option{batch.Tasklet("talk", func() core.Tasklet {
		return batch.TaskletFunc(func(ctx context.Context, c *batch.StepContribution) error {
			log.InfoContext(ctx, "at work")
			return c.Sleep(ctx, 50*time.Millisecond)
		})
	})}
	return write(t, t.TempDir(), "job.yaml", `
job: spread
flow:
- step: talk
  partition: {by: {count: 16}, remote: true}
  tasklet: {talk: {}}
`), options
}

// Rule LG1.
func TestPartsOnWorkersLogToTheSameHistory(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		file, options := remoteJob(t)
		manager, _ := app(t, url, options...)
		stop := make(chan struct{})
		ended := make(chan error, 2)
		for range 2 {
			worker, _ := app(t, url, options...)
			go func() {
				ended <- worker.Work(t.Context(), stop, batch.WorkOptions{Slots: 2, Poll: 20 * time.Millisecond})
			}()
		}
		exec, err := manager.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		close(stop)
		require.NoError(t, errors.Join(<-ended, <-ended))
		logged(t, manager, operator.LogRequest{Execution: exec.ID})
		var own []operator.LogLineView
		require.Eventually(t, func() bool {
			lines, _ := logged(t, manager, operator.LogRequest{Execution: exec.ID})
			own = ofEvent(lines, "log")
			return len(own) == 16 && len(ofEvent(lines, "step.ended")) == 17
		}, 20*time.Second, 50*time.Millisecond)
		parts := map[string]bool{}
		for _, l := range own {
			require.Equal(t, "talk", l.Step)
			parts[l.Part] = true
		}
		require.Len(t, parts, 16)
		db, err := manager.Databases.Database("")
		require.NoError(t, err)
		var writers int
		require.NoError(t, scalar(t, db.Conn(), "SELECT count(DISTINCT writer) FROM surfin_log_line WHERE part <> '' AND event = 'log'", &writers))
		require.Equal(t, 2, writers)
		page, err := manager.Log(t.Context(), operator.LogRequest{Execution: exec.ID, Step: "talk:" + own[0].Part})
		require.NoError(t, err)
		require.Len(t, page.Lines, 3)
	})
}
