package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// The number of cases for each database is a tenth of SURFIN_SOAK.
func TestNoTaskIsLostOrEndsTwiceWhateverHappens(t *testing.T) {
	cases := 20
	if given := os.Getenv("SURFIN_SOAK"); given != "" {
		n, err := strconv.Atoi(given)
		require.NoError(t, err)
		cases = max(1, n/10)
	}
	if testing.Short() {
		cases = 10
	}
	checks := flag.Lookup("rapid.checks")
	given := checks.Value.String()
	require.NoError(t, checks.Value.Set(strconv.Itoa(cases)))
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(given)) })
	for name, open := range map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, open(t), nil)
			rapid.Check(t, func(rt *rapid.T) {
				m := &taskModel{office: o, t: rt, attempts: map[taskports.AttemptID]int{}, budget: map[task.GroupID]task.Budget{}}
				m.submit(rt)
				rt.Repeat(map[string]func(*rapid.T){
					"": func(*rapid.T) { m.invariants() }, "submit": m.submit, "claim": m.claim, "claim without reply": m.claimBlindly,
					"end": m.end, "end again": m.endAgain, "heartbeat": m.heartbeat, "recover": m.recover, "due": m.due, "look": m.look,
					"redeliver": m.redeliver, "cancel": m.cancel, "cancel group": m.cancelGroup, "rerun": m.rerun, "restart": m.restart,
				})
				m.finish()
			})
		})
	}
}

type taskModel struct {
	*office
	t          *rapid.T
	groups     []task.GroupID
	budget     map[task.GroupID]task.Budget
	tasks      []task.ID
	deliveries []taskports.Delivery
	held       []taskports.Ref // claimed, and neither ended nor lost as far as the worker knows
	ended      []taskports.Ref
	attempts   map[taskports.AttemptID]int // the number of applied ends of each
}

func (m *taskModel) ok(err error) {
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// refusable accepts errors that mean that the tables have decided otherwise.
func (m *taskModel) refusable(err error) {
	var refused *core.TransitionError
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, core.ErrLostOwner) {
		m.t.Fatalf("%v", err)
	}
}

func (m *taskModel) worker(t *rapid.T, lease time.Duration) taskports.Claimant {
	return taskports.Claimant{Worker: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "worker"), Capacity: 1, Types: []string{"work"}, Lease: lease}
}

func lease(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{time.Hour, time.Hour, time.Microsecond}).Draw(t, "lease")
}

func (m *taskModel) submit(t *rapid.T) {
	if len(m.groups) == 3 {
		t.Skip("enough")
	}
	b := task.Budget{
		MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"), MaxTotalAttempts: rapid.IntRange(0, 5).Draw(t, "all attempts"),
		MaxNoProgress: rapid.SampledFrom([]int{0, 2}).Draw(t, "no progress"),
	}
	sub := task.Submission{Budget: b, Type: "work", Tasks: make([]task.Spec, rapid.IntRange(1, 4).Draw(t, "tasks"))}
	order := rapid.Permutation([]int{0, 1, 2, 3}[:len(sub.Tasks)]).Draw(t, "order") // each may wait for those before it
	for i, at := range order {
		sub.Tasks[at].Key = strconv.Itoa(at)
		for _, before := range order[:i] {
			if rapid.IntRange(1, 3).Draw(t, "waits") == 1 {
				sub.Tasks[at].After = append(sub.Tasks[at].After, strconv.Itoa(before))
			}
		}
	}
	done, err := m.service.Submit(context.Background(), sub)
	m.ok(err)
	m.groups, m.budget[done.Group] = append(m.groups, done.Group), b
	m.tasks = append(m.tasks, done.Tasks...)
	m.look(t)
}

func (m *taskModel) look(*rapid.T) {
	found, err := m.repo.Due(context.Background(), []string{"work"}, nil, 100)
	m.ok(err)
	m.deliveries = append(m.deliveries, found...)
}

func (m *taskModel) claim(t *rapid.T) {
	d := rapid.SampledFrom(m.deliveries).Draw(t, "delivery")
	claimed, answer, err := m.repo.Claim(context.Background(), d, m.worker(t, lease(t)))
	m.refusable(err)
	if claimed == nil {
		return
	}
	for _, ref := range m.held {
		if ref == claimed.Ref {
			if answer != core.Duplicate {
				t.Fatalf("attempt %d begins twice: %s", ref.Attempt, answer)
			}
			return
		}
	}
	m.held = append(m.held, claimed.Ref)
}

func (m *taskModel) claimBlindly(t *rapid.T) {
	d := rapid.SampledFrom(m.deliveries).Draw(t, "delivery")
	_, _, err := m.repo.Claim(context.Background(), d, m.worker(t, time.Microsecond))
	m.refusable(err)
}

func (m *taskModel) decide(task.Case) (string, task.Decision) {
	return "at once", task.Retry(0, "again")
}

func outcomes(t *rapid.T) task.Outcome {
	return rapid.SampledFrom([]task.Outcome{task.Success(), task.Failure("no"), task.Failure("no"), task.Blocked("help"), {Kind: task.OutcomeFailure, Fatal: true}}).Draw(t, "outcome")
}

func (m *taskModel) endOf(t *rapid.T, ref taskports.Ref) {
	ended, err := m.repo.End(context.Background(), ref, outcomes(t), m.decide)
	m.refusable(err)
	if err == nil && ended.Answer == core.Applied {
		if m.attempts[ref.Attempt]++; m.attempts[ref.Attempt] > 1 {
			t.Fatalf("attempt %d of task %d has ended twice", ref.Attempt, ref.ID)
		}
	}
}

func (m *taskModel) end(t *rapid.T) {
	if len(m.held) == 0 {
		t.Skip("nothing runs")
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(t, "which")
	ref := m.held[i]
	m.held = append(m.held[:i:i], m.held[i+1:]...)
	m.ended = append(m.ended, ref)
	m.endOf(t, ref)
}

func (m *taskModel) endAgain(t *rapid.T) {
	if len(m.ended) == 0 {
		t.Skip("nothing has ended")
	}
	m.endOf(t, rapid.SampledFrom(m.ended).Draw(t, "ref"))
}

func (m *taskModel) heartbeat(t *rapid.T) {
	by := m.worker(t, lease(t))
	var mine []taskports.Ref
	for _, ref := range m.held {
		if ref.Worker == by.Worker {
			mine = append(mine, ref)
		}
	}
	confirmed, err := m.repo.Heartbeat(context.Background(), by, mine)
	m.ok(err)
	if rapid.Bool().Draw(t, "ignores what is lost") {
		return
	}
	for _, l := range confirmed.Lost {
		for i, ref := range m.held {
			if ref == l.Ref {
				m.held = append(m.held[:i:i], m.held[i+1:]...)
				m.ended = append(m.ended, ref)
				break
			}
		}
	}
}

func (m *taskModel) recover(*rapid.T) {
	_, err := m.repo.Confirm(context.Background(), 100)
	m.ok(err)
	_, err = m.repo.Reap(context.Background(), 100, nil, m.decide)
	m.ok(err)
}

func (m *taskModel) due(*rapid.T) {
	found, err := m.repo.MakeDue(context.Background(), 100)
	m.ok(err)
	m.deliveries = append(m.deliveries, found...)
}

func (m *taskModel) redeliver(t *rapid.T) {
	waiting, err := m.repo.Waiting(context.Background(), 0, 100)
	m.ok(err)
	var lost []taskports.Delivery
	for _, d := range waiting {
		if rapid.Bool().Draw(t, "lost") {
			lost = append(lost, d)
		}
	}
	again, err := m.repo.Redeliver(context.Background(), lost)
	m.ok(err)
	m.deliveries = append(m.deliveries, again...)
}

// rarely skips an action, except in one of n draws: rapid then draws another action, and the test
// continues.
func rarely(t *rapid.T, n int) {
	if rapid.IntRange(1, n).Draw(t, "rarely") > 1 {
		t.Skip("another action")
	}
}

func (m *taskModel) cancel(t *rapid.T) {
	rarely(t, 3)
	_, err := m.service.Cancel(context.Background(), rapid.SampledFrom(m.tasks).Draw(t, "task"), runtime.By{})
	m.refusable(err)
}

func (m *taskModel) cancelGroup(t *rapid.T) {
	rarely(t, 6)
	_, err := m.service.CancelGroup(context.Background(), rapid.SampledFrom(m.groups).Draw(t, "group"), runtime.By{})
	if over := new(taskports.GroupOverError); !errors.As(err, &over) {
		m.refusable(err)
	}
}

func (m *taskModel) rerun(t *rapid.T) {
	_, err := m.service.Rerun(context.Background(), rapid.SampledFrom(m.tasks).Draw(t, "task"), runtime.By{})
	m.refusable(err)
}

func (m *taskModel) restart(t *rapid.T) {
	rarely(t, 6)
	_, err := m.repo.Continue(context.Background(), rapid.SampledFrom(m.groups).Draw(t, "group"), 1, "me", "restarted")
	m.ok(err)
}

func (m *taskModel) invariants() {
	if len(m.groups) == 0 {
		return
	}
	var ids []string
	for _, g := range m.groups {
		ids = append(ids, fmt.Sprint(g))
	}
	of := "group_id IN (" + strings.Join(ids, ", ") + ")"
	for what, query := range map[string]string{
		"a task that runs has one attempt that runs, and no other has": `SELECT count(*) FROM surfin_task t WHERE ` + of + ` AND
			(SELECT count(*) FROM surfin_task_attempt a WHERE a.task_id = t.id AND a.state = 'RUNNING') <> CASE WHEN t.state = 'RUNNING' THEN 1 ELSE 0 END`,
		"an attempt succeeded where the task did, and once": `SELECT count(*) FROM surfin_task t WHERE ` + of + ` AND
			(SELECT count(*) FROM surfin_task_attempt a WHERE a.task_id = t.id AND a.state = 'SUCCESS') <> CASE WHEN t.state = 'SUCCEEDED' THEN 1 ELSE 0 END`,
		"a task begins when all that it waits for has succeeded": `SELECT count(*) FROM surfin_task t JOIN surfin_task_after a ON a.task_id = t.id
			JOIN surfin_task n ON n.id = a.needs_id WHERE t.` + of + ` AND n.state <> 'SUCCEEDED' AND (t.tries > 0 OR t.state NOT IN ('WAITING', 'CANCELED'))`,
		"a task waits for what will come": `SELECT count(*) FROM surfin_task t JOIN surfin_task_after a ON a.task_id = t.id
			JOIN surfin_task n ON n.id = a.needs_id WHERE t.` + of + ` AND t.state = 'WAITING' AND n.state IN ('FAILED', 'TIMED_OUT', 'CANCELED')`,
		"a task waits for something": `SELECT count(*) FROM surfin_task t WHERE ` + of + ` AND t.state = 'WAITING' AND NOT EXISTS
			(SELECT 1 FROM surfin_task_after a JOIN surfin_task n ON n.id = a.needs_id WHERE a.task_id = t.id AND n.state <> 'SUCCEEDED')`,
		"every execution is counted": `SELECT count(*) FROM surfin_task t WHERE ` + of + ` AND
			t.tries <> (SELECT count(*) FROM surfin_task_attempt a WHERE a.task_id = t.id)`,
	} {
		if n := m.number(query); n != 0 {
			m.t.Fatalf("%s: not of %d tasks", what, n)
		}
	}
	if n := m.number("SELECT count(*) FROM surfin_task WHERE " + of); n != len(m.tasks) {
		m.t.Fatalf("there are %d tasks of %d", n, len(m.tasks))
	}
	for _, g := range m.groups {
		b := m.budget[g]
		if n := m.number(fmt.Sprintf("SELECT count(*) FROM surfin_task WHERE group_id = %d AND attempts > %d", g, b.MaxAttempts)); n != 0 {
			m.t.Fatalf("%d tasks of group %d were attempted more often than %d times", n, g, b.MaxAttempts)
		}
		n := m.number(fmt.Sprintf("SELECT count(*) FROM surfin_task_attempt WHERE group_id = %d AND id > (SELECT counted_after FROM surfin_task_group WHERE id = %d)", g, g))
		if b.MaxTotalAttempts > 0 && n > b.MaxTotalAttempts {
			m.t.Fatalf("group %d was attempted %d times, and may be %d times", g, n, b.MaxTotalAttempts)
		}
	}
}

func (m *taskModel) number(query string) (n int) {
	m.ok(m.db.Conn().QueryRowContext(context.Background(), query).Scan(&n))
	return n
}

func (m *taskModel) finish() {
	for _, ref := range m.ended { // a worker that was informed of a loss releases its attempt, however late
		_, err := m.repo.End(context.Background(), ref, task.Failure("lost"), m.decide)
		m.refusable(err)
	}
	for range 40 {
		over := 0
		for _, id := range m.groups {
			g, err := m.service.Group(context.Background(), id)
			m.ok(err)
			if g.IsOver() {
				over++
			}
		}
		m.invariants()
		if over == len(m.groups) {
			return
		}
		for _, name := range []string{"a", "b", "c"} { // the leases of lost workers expire
			var mine []taskports.Ref
			for _, ref := range m.held {
				if ref.Worker == name {
					mine = append(mine, ref)
				}
			}
			confirmed, err := m.repo.Heartbeat(context.Background(), taskports.Claimant{Worker: name, Types: []string{"work"}, Lease: time.Microsecond}, mine)
			m.ok(err)
			for _, l := range confirmed.Lost {
				_, err := m.repo.End(context.Background(), l.Ref, task.Failure("lost"), m.decide)
				m.refusable(err)
			}
		}
		// Earlier promises have expired as well: a heartbeat does not move them to an earlier time.
		_, err := m.db.Conn().ExecContext(context.Background(), "UPDATE surfin_task SET confirm_until = lease_until WHERE state = 'RUNNING'")
		m.ok(err)
		m.recover(m.t)
		m.due(m.t)
		found, err := m.repo.Due(context.Background(), []string{"work"}, nil, 100)
		m.ok(err)
		for _, d := range found {
			claimed, _, err := m.repo.Claim(context.Background(), d, taskports.Claimant{Worker: "calm", Types: []string{"work"}, Lease: time.Hour})
			m.refusable(err)
			if claimed != nil {
				_, err = m.repo.End(context.Background(), claimed.Ref, task.Success().WithArtifact(task.JSON(json.RawMessage(`1`))), m.decide)
				m.ok(err)
			}
		}
	}
	m.t.Fatalf("tasks come to no end")
}
