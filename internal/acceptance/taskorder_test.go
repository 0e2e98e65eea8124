package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// SURFIN_TASK_FAULTS is the number of faults, with ten tasks for each.
func TestATaskBeginsWhenAllThatItWaitsForHasSucceededThoughWorkersAreKilled(t *testing.T) {
	t.Parallel()
	faults := envInt(t, "SURFIN_TASK_FAULTS", 4)
	for name, open := range map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres, "river": testdb.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env []string
			if name == "river" {
				env = append(env, "SURFIN_ENGINE=river")
			}
			f := newOrderFaults(t, open(t), 10*faults, env...)
			for n := range faults {
				f.awaitDone(10*n + 3)
				if i := rand.IntN(len(f.workers)); n%2 == 0 {
					f.kill(i)
				} else {
					f.freeze(i)
				}
			}
			code, out := f.run("tasks", "wait", "1", "--timeout", "10m")
			require.Zero(t, code, "%s\n%s", out, f.logs())
			f.assertEachEndedOnce()
			f.assertOrder()
		})
	}
}

// newOrderFaults submits tasks that may each wait for some of the ten before
// it, in a random order of the file.
func newOrderFaults(t *testing.T, url string, n int, env ...string) *taskFaults {
	t.Helper()
	specs := make([]string, n)
	for i := range n {
		after := []string{}
		for j := max(0, i-10); j < i; j++ {
			if rand.IntN(4) == 0 {
				after = append(after, fmt.Sprintf("%q", fmt.Sprint("t", j)))
			}
		}
		script := fmt.Sprintf("echo %d >> ran; sleep 0.1", i)
		if i%5 == 0 {
			script += fmt.Sprintf("; test -e once%d || { touch once%d; exit 1; }", i, i)
		}
		specs[i] = fmt.Sprintf(`{"key": "t%d", "after": [%s], "payload": {"script": %q}}`, i, strings.Join(after, ", "), script)
	}
	rand.Shuffle(n, func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
	return newFaultsOf(t, url, n, `{"type": "shell", "budget": {"max_attempts": 100}, "tasks": [`+strings.Join(specs, ",")+`]}`, env...)
}

func (f *taskFaults) assertOrder() {
	f.t.Helper()
	require.Positive(f.t, f.count("SELECT count(*) FROM surfin_task_after"))
	require.Zero(f.t, f.count(`SELECT count(*) FROM surfin_task_attempt a JOIN surfin_task_after o ON o.task_id = a.task_id
		JOIN surfin_task_attempt n ON n.task_id = o.needs_id AND n.state = 'SUCCESS' WHERE a.started_at < n.ended_at`))
}

func TestAFailureInAGroupIsSeenByThoseWhoAskForWhatWaits(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_TASKS_SHELL=true"}
		for text, want := range map[string]string{
			`[{"key": "a", "after": ["b"], "type": "shell"}]`:                                                `tasks[0]: after: no task of the group has the key "b"`,
			`[{"key": "a", "after": ["b"], "type": "shell"}, {"key": "b", "after": ["a"], "type": "shell"}]`: `in a cycle: "a" after "b" after "a"`,
		} {
			s.write("tasks.json", text)
			code, out := s.run("tasks", "submit", "tasks.json")
			require.Equal(t, 2, code, out)
			require.Contains(t, out, want)
		}
		s.write("tasks.json", `{"type": "shell", "budget": {"max_attempts": 1}, "tasks": [
			{"key": "load", "after": ["fetch"], "payload": {"script": "echo loaded >> ran"}},
			{"key": "fetch", "payload": {"script": "test -e mended"}},
			{"key": "report", "after": ["load"], "payload": {"script": "echo reported >> ran"}}]}`)
		s.said("tasks", "submit", "tasks.json")
		require.Contains(t, s.said("tasks", "list"), `task 2 ("fetch"), which is PENDING`)
		show := s.said("tasks", "show", "3")
		require.Contains(t, show, "waits for   task 1 (\"load\"), which is WAITING")
		require.Contains(t, show, "after       load")

		s.start("worker", "--poll", "50ms").await("waiting for work")
		code, out := s.run("tasks", "wait", "1", "--timeout", "1m")
		require.Equal(t, 1, code, out)
		require.Contains(t, s.said("tasks", "show", "3"), `canceled: task 2 ("fetch"), for which it waits, is FAILED: exit status 1`)
		code, out = s.run("tasks", "rerun", "3")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, `task 1 ("load"), for which it waits, is CANCELED: run that task again`)
		s.write("mended", "")
		s.said("tasks", "rerun", "2")
		code, out = s.run("tasks", "wait", "1", "--timeout", "1m")
		require.Zero(t, code, out)
		require.Equal(t, "loaded\nreported\n", s.read("ran"))
	})
}

func TestAStepOfTasksHasThemExecutedInTheirOrder(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_TASKS_SHELL=true"}
		s.write("job.yaml", `job: ordered
flow:
- step: make
  tasklet: {sql: "create table work (id int, needs text, script text); insert into work values (1, '2, 3', 'echo 1 >> ran'), (2, '', 'echo 2 >> ran'), (3, null, 'test -e mended && echo 3 >> ran')"}
- step: rows
  tasks:
    handler: shell
    items: {query: {sql: "select id, needs, script from work", key: [id], item: {id: int, needs: string null, script: string}}}
    key: id
    after: needs
    budget: {max_attempts: 1}
- step: list
  tasks:
    handler: shell
    items:
    - {name: c, needs: [a, b], script: echo c >> ran}
    - {name: a, script: sleep 0.2; echo a >> ran}
    - {name: "${'b'}", needs: "${'a'}", script: echo b >> ran}
    key: name
    after: needs
`)
		code, out := s.run("run", "job.yaml")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, `2 of 3 tasks of group 1 did not succeed: task 1 is CANCELED: canceled: task 3 ("3"), for which it waits, is FAILED: exit status 1`)
		s.write("mended", "")
		code, out = s.run("run", "job.yaml")
		require.Zero(t, code, out)
		require.Equal(t, "2\n3\n1\na\nb\nc\n", s.read("ran"))
	})
}
