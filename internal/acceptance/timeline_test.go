package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const timelineTail = `
- step: list
  tasklet: {sql: "create table work (id int, script text); insert into work values (1, 'sleep 0.2'), (2, 'sleep 0.3'), (3, 'sleep 0.4')"}
- step: work
  tasks:
    handler: shell
    items: {query: {sql: select script from work, key: [script], item: {script: string}}}
- step: late
  tasklet: {sql: insert into later values (1)}
`

// Rule P4. Two workers run the parts, one is killed; then a step fails, and a restart completes.
func TestTheTimeLineHasPartsOfAKilledWorkerWaitsAndTasks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		const rows = 3000
		s := newRemoteScene(t, url, rows, 10)
		s.env = append(s.env, "SURFIN_TASKS_SHELL=true")
		text := s.read("parts.yaml")
		s.write("parts.yaml", text[:strings.Index(text, "- step: count")]+strings.TrimPrefix(timelineTail, "\n"))
		db, r := s.open()
		manager := s.start("run", "parts.yaml", "into=target")
		s.awaitParts(r, manager, partFiles, func(p core.StepExecution) bool { return p.Status == core.StatusStarting })
		time.Sleep(time.Second) // the parts wait for a worker
		first := s.start("worker", "--slots", "2", "--poll", "20ms")
		defer first.signal(syscall.SIGKILL)
		s.awaitParts(r, manager, 2, isAtWork)
		second := s.start("worker", "--slots", "2", "--poll", "20ms")
		defer second.signal(syscall.SIGKILL)
		s.awaitParts(r, manager, 4, func(p core.StepExecution) bool { return p.Assigned > 0 })
		first.signal(syscall.SIGKILL)
		code, out := manager.wait()
		require.NotZero(t, code, out)
		s.exec(db, "create table later (id int)")
		code, out = s.run("restart", "1")
		require.Zero(t, code, out)

		var line operator.Timeline
		require.NoError(t, json.Unmarshal([]byte(s.said("timeline", "2", "--format", "json")), &line))
		has := map[string]int{}
		final := map[string]operator.Span{}
		lost := map[string]operator.Span{}
		for _, span := range line.Spans {
			require.False(t, span.Ended.IsZero() || span.Ended.Before(span.Started), "%+v", span)
			has[fmt.Sprintf("%s %d %s%s", span.Kind, span.Attempt, span.Wait, span.Status)]++
			switch {
			case span.Lost:
				lost[span.Name] = span
			case span.Kind == operator.SpanPart:
				require.Equal(t, "COMPLETED", span.Status)
				require.NotEmpty(t, span.Worker)
				final[span.Name] = span
			}
		}
		require.Len(t, final, partFiles)
		require.NotEmpty(t, lost)
		survivor := final["load:p"+fmt.Sprint(partFiles-1)+".csv"].Process.PID // the last part began after the kill
		for name, span := range lost {
			require.NotEqual(t, survivor, span.Process.PID)
			require.Equal(t, survivor, final[name].Process.PID)
			require.NotEqual(t, span.Worker, final[name].Worker)
			require.False(t, final[name].Started.Before(span.Ended), name)
		}
		require.Equal(t, 1, has["attempt 1 FAILED"])
		require.Equal(t, 1, has["attempt 2 COMPLETED"])
		require.GreaterOrEqual(t, has["wait 1 queued"], partFiles, "each part waited for a second: %v", has)
		require.GreaterOrEqual(t, has["wait 1 parked"], 2, "the execution and the step load: %v", has)
		require.Equal(t, 3, has["task 1 SUCCESS"], "%v", has)
		require.Equal(t, 2, line.Critical.Attempt)
		require.Equal(t, "late", line.Critical.Steps[0].Step)
		shown := s.said("timeline", "1")
		t.Log(shown)
		for _, word := range []string{"attempt 1 (execution 1)", "lost by its worker", "waits for a worker", "parked", "worker ", "Of the ", "░", "█"} {
			require.Contains(t, shown, word)
		}

		parts := s.said("parts", "1", "--order", "duration", "--limit", "3")
		t.Log(parts)
		require.Contains(t, parts, "load: 8 partitions: 8 COMPLETED")
		require.Contains(t, parts, "there are more: --after ")
		require.Contains(t, parts, "worker ")
		require.Contains(t, s.said("parts", "2"), "no step of execution 2 has parts")
		code, out = s.run("parts", "1", "--step", "lod")
		require.Equal(t, 2, code, out)
		require.Contains(t, out, "allowed: load")
	})
}
