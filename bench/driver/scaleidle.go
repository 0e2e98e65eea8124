package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

const (
	// loopsOfProcess is the most worker loops of one process.
	loopsOfProcess = 64
	idleSlots      = 4
	idleTime       = 10 * time.Second
	// idleLease is the shortest one that keeps the default heartbeat.
	idleLease = 12 * time.Second
	// late is how long after its lease the work of a killed worker may wait.
	late = 2 * time.Second
	// mostLoops need about three connections each.
	mostLoops = 512
	// startsAsked is how many tasks are submitted one after the other.
	startsAsked = 20
)

func scaleHandlers() fx.Option {
	return fx.Options(
		batch.Handler("nothing", func() task.HandlerFunc {
			return func(context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil }
		}),
		batch.Handler("hold", func() task.HandlerFunc {
			return func(ctx context.Context, t task.Task) (task.Outcome, error) {
				if t.Attempts > 1 { // it has been taken over
					return task.Success(), nil
				}
				<-ctx.Done()
				return task.Outcome{}, context.Cause(ctx)
			}
		}))
}

// workInLoops is a process with that many workers, each as `surfin worker --slots 4` is one.
func workInLoops(ctx context.Context, w Work) (err error) {
	stop, done := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer done()
	app, err := openApp(ctx, w, w.URL, scaleHandlers())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	ended := make([]error, w.Loops)
	var all sync.WaitGroup
	for i := range w.Loops {
		all.Go(func() { ended[i] = app.Work(ctx, stop.Done(), runtime.Options{Slots: idleSlots, Drain: -1}) })
	}
	all.Wait()
	return errors.Join(ended...)
}

// idleWorkers starts more processes until there are that many loops in addition to others.
type idleWorkers struct {
	w     Work
	loops int
	ends  []func() error
}

func (i *idleWorkers) grow(loops int) error {
	for i.loops < loops {
		i.w.Loops = min(loops-i.loops, loopsOfProcess)
		end, err := startWorker(i.w)
		if err != nil {
			return err
		}
		i.loops += i.w.Loops
		i.ends = append(i.ends, end)
	}
	return nil
}

func (i *idleWorkers) end() error {
	var errs []error
	for _, end := range i.ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// scaleIdle doubles the idle workers until they need a core of the server, or the work of a killed one waits
// longer than a lease and two seconds, or the statements grow no more: then the machine is busy with the workers.
func scaleIdle(ctx context.Context, b *bench) (rows [][]string, err error) {
	rows = [][]string{{"idle workers", "statements/s", "write transactions/s", "log of the server/s", "server CPU", "connections", "a new task starts after", "a killed worker's task runs again after its lease and"}}
	last := 0.
	for loops := 1; ; loops *= 2 {
		at, err := idleAt(ctx, b, loops)
		if err != nil {
			return nil, fmt.Errorf("%d workers: %w", loops, err)
		}
		row := append([]string{fmt.Sprint(loops)}, at.rate.cells()...)
		row[4] = percentText(at.rate.cpu) + " of a core"
		rows = append(rows, append(row, fmt.Sprint(at.sessions), timeText(at.start), fmt.Sprintf("%.1f s", at.takeOver.Seconds())))
		fmt.Fprintln(os.Stderr, rows[len(rows)-1])
		if at.takeOver > late || at.rate.cpu > 1 || loops > loopsOfProcess && at.rate.statements < 1.2*last || loops == mostLoops {
			return rows, nil
		}
		last = at.rate.statements
	}
}

type idleCost struct {
	rate     cost
	sessions int
	start    float64 // the median of the seconds from a task's submission to its start
	takeOver time.Duration
}

func idleAt(ctx context.Context, b *bench, loops int) (at idleCost, err error) {
	url, err := b.scaleDatabase(ctx, "idle")
	if err != nil {
		return at, err
	}
	m, err := b.meterOf(ctx, url)
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	w := Work{Dir: b.dir, URL: url, River: true, Lease: idleLease}
	app, err := openApp(ctx, w, url, scaleHandlers())
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	victim := w
	victim.Loops = 1
	kill, err := startVictim(victim)
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, kill()) }()
	if err := awaitLoops(ctx, app, 1); err != nil {
		return at, err
	}
	held, err := app.Tasks.Submit(ctx, task.Submission{Type: "hold", Tasks: make([]task.Spec, 1), Budget: task.Budget{MaxAttempts: 3}})
	if err != nil {
		return at, err
	}
	if err := m.until(ctx, "SELECT count(*) FROM surfin_task WHERE state = 'RUNNING'"); err != nil {
		return at, err
	}
	idle := &idleWorkers{w: w}
	defer func() { err = errors.Join(err, idle.end()) }()
	if err := idle.grow(loops); err != nil {
		return at, err
	}
	if err := awaitLoops(ctx, app, loops+1); err != nil {
		return at, err
	}
	if err := pause(ctx, restful); err != nil {
		return at, err
	}
	if err := m.reset(ctx); err != nil {
		return at, err
	}
	if at.rate, err = m.rate(ctx, idleTime); err != nil {
		return at, err
	}
	if err := m.most(ctx, idleTime.Seconds()); err != nil {
		return at, err
	}
	if at.sessions, err = m.sessions(ctx); err != nil {
		return at, err
	}
	if at.start, err = m.startsOf(ctx, app); err != nil {
		return at, err
	}
	if err := kill(); err != nil {
		return at, err
	}
	at.takeOver, err = m.takenOver(ctx, int64(held.Group))
	return at, err
}

// startVictim starts a worker that ends without a sign.
func startVictim(w Work) (kill func() error, err error) {
	end, err := startWorkerProcess(w)
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		if err := errors.Join(end.Process.Kill(), end.Wait()); !wasKilled(err) {
			return fmt.Errorf("the worker that is to be killed: %w", err)
		}
		return nil
	}), nil
}

func awaitLoops(ctx context.Context, app *batch.App, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*workersTime)
	defer cancel()
	for {
		workers, err := app.Tasks.Workers(ctx)
		if err != nil {
			return err
		}
		if len(workers) >= n {
			return nil
		}
		if err := pause(ctx, workerPoll); err != nil {
			return err
		}
	}
}

// until waits until a query returns more than 0.
func (m *meter) until(ctx context.Context, query string, args ...any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, workersTime, fmt.Errorf("it is not so after %v: %s", workersTime, query))
	defer cancel()
	for {
		var n int
		if err := m.conn.QueryRow(ctx, query, args...).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
		if err := pause(ctx, workerPoll); err != nil {
			return err
		}
	}
}

// startsOf submits tasks one after the other, and returns the median of the seconds until they start.
func (m *meter) startsOf(ctx context.Context, app *batch.App) (median float64, err error) {
	var first task.GroupID
	for i := range startsAsked {
		accepted, err := app.Tasks.Submit(ctx, task.Submission{Type: "nothing", Tasks: make([]task.Spec, 1)})
		if err != nil {
			return 0, err
		}
		if i == 0 {
			first = accepted.Group
		}
		if err := m.until(ctx, "SELECT count(*) FROM surfin_task WHERE group_id = $1 AND state = 'SUCCEEDED'", int64(accepted.Group)); err != nil {
			return 0, err
		}
	}
	err = m.conn.QueryRow(ctx, `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.started_at - t.delivered_at)::float8)
		FROM surfin_task t JOIN surfin_task_attempt a ON a.task_id = t.id WHERE t.group_id >= $1 AND t.type = 'nothing'`, int64(first)).Scan(&median)
	return median, err
}

// takenOver is the time between the end of the lease of a group's only task and its second attempt.
func (m *meter) takenOver(ctx context.Context, group int64) (after time.Duration, err error) {
	var lease time.Time
	if err := m.conn.QueryRow(ctx, "SELECT lease_until FROM surfin_task WHERE group_id = $1", group).Scan(&lease); err != nil {
		return 0, err
	}
	const second = "FROM surfin_task_attempt a JOIN surfin_task t ON t.id = a.task_id WHERE t.group_id = $1 AND a.number = 2"
	if err := m.until(ctx, "SELECT count(*) "+second, group); err != nil {
		return 0, err
	}
	var began time.Time
	err = m.conn.QueryRow(ctx, "SELECT a.started_at "+second, group).Scan(&began)
	return began.Sub(lease), err
}
