package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// costing measures one more of something: the cost of many, less the cost of few.
type costing struct {
	b   *bench
	m   *meter
	app *batch.App
	// idle is the cost of a second of the workers that run meanwhile.
	idle cost
}

func (b *bench) costing(ctx context.Context, w Work) (c *costing, end func() error, err error) {
	c = &costing{b: b}
	if c.m, err = b.meterOf(ctx, w.URL); err != nil {
		return nil, nil, err
	}
	if c.app, err = openApp(ctx, w, w.URL, scaleHandlers()); err != nil {
		return nil, nil, errors.Join(err, c.m.close(ctx))
	}
	return c, func() error { return errors.Join(c.app.Close(ctx), c.m.close(ctx)) }, nil
}

func (c *costing) one(ctx context.Context, few, many int, act func(n int) error) (cost, error) {
	if err := act(few); err != nil { // for work that is done only once
		return cost{}, err
	}
	of := func(n int) (cost, error) {
		got, err := c.m.during(ctx, func() error { return act(n) })
		return got.minus(c.idle.times(got.seconds)), err
	}
	less, err := of(few)
	if err != nil {
		return cost{}, err
	}
	more, err := of(many)
	return more.minus(less).times(1 / float64(many-few)), err
}

func (c *costing) job(ctx context.Context, job string, params map[string]string) error {
	file := filepath.Join(c.b.dir, "scale.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		return err
	}
	exec, err := c.app.Run(ctx, batch.RunRequest{File: file, Params: params, Again: true})
	if err == nil && exec.Status != core.StatusCompleted {
		err = fmt.Errorf("execution %d is %s: %s", exec.ID, exec.Status, exec.Error)
	}
	return err
}

func stepsJob(n int) string {
	return "job: steps\nflow:\n" + repeated(n, func(i int) string { return fmt.Sprintf("- {step: s%d, tasklet: {sql: select 1}}\n", i) })
}

func repeated(n int, of func(i int) string) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(of(i))
	}
	return out.String()
}

func partsJob(n int, how string) string {
	return fmt.Sprintf("job: parts\nflow:\n- step: work\n  partition: {by: {count: %d}, %s}\n  tasklet: {sql: select 1}\n", n, how)
}

const (
	inProcess = "workers: 4"
	onAWorker = "remote: true"
)

// costed is a line of the section costs.
type costed struct {
	name      string
	few, many int
	act       func(ctx context.Context, c *costing, n int) error
}

const chunkRows = 1000

func costsInProcess(b *bench) []costed {
	return []costed{
		{"a job of one tasklet step", 5, 55, func(ctx context.Context, c *costing, n int) error {
			for range n {
				if err := c.job(ctx, stepsJob(1), nil); err != nil {
					return err
				}
			}
			return nil
		}},
		{"one more tasklet step", 1, 51, func(ctx context.Context, c *costing, n int) error { return c.job(ctx, stepsJob(n), nil) }},
		{"a chunk of 1000 rows of 86 bytes", 20, 220, func(ctx context.Context, c *costing, n int) error {
			input, _, err := b.input(n * chunkRows)
			if err != nil {
				return err
			}
			if _, err := c.m.conn.Exec(ctx, "TRUNCATE sale"); err != nil {
				return err
			}
			job := "job: load\nparameters: {input: {type: path}}\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: \"${params.input}\", item: " + rowItem + "}}\n    writer: {table: sale}\n"
			return c.job(ctx, job, map[string]string{"input": input})
		}},
		{"a part in the process of its job", 100, 1100, func(ctx context.Context, c *costing, n int) error { return c.job(ctx, partsJob(n, inProcess), nil) }},
	}
}

func costsOnWorkers() []costed {
	return []costed{
		{"a part on a worker", 100, 1100, func(ctx context.Context, c *costing, n int) error { return c.job(ctx, partsJob(n, onAWorker), nil) }},
		{"a task on a worker", 100, 1100, func(ctx context.Context, c *costing, n int) error {
			accepted, err := c.app.Tasks.Submit(ctx, task.Submission{Type: "nothing", Tasks: make([]task.Spec, n)})
			if err != nil {
				return err
			}
			return c.m.until(ctx, "SELECT count(*) FROM surfin_task_group g WHERE g.id = $1 AND NOT EXISTS (SELECT 1 FROM surfin_task t WHERE t.group_id = g.id AND t.state <> 'SUCCEEDED')", int64(accepted.Group))
		}},
	}
}

func (c *costing) lines(ctx context.Context, list []costed) (rows [][]string, err error) {
	for _, l := range list {
		got, err := c.one(ctx, l.few, l.many, func(n int) error { return l.act(ctx, c, n) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		rows = append(rows, append([]string{l.name}, got.cells()...))
		fmt.Fprintln(os.Stderr, rows[len(rows)-1])
	}
	return rows, nil
}

// scaleCosts is the cost of one more of each kind of work, and of a second in which nothing happens.
func scaleCosts(ctx context.Context, b *bench) (rows [][]string, err error) {
	url, err := b.scaleDatabase(ctx, "costs")
	if err != nil {
		return nil, err
	}
	rows = [][]string{{"work", "statements", "write transactions", "log of the server", "server CPU"}}
	for _, river := range []bool{false, true} {
		more, err := scaleCostsOf(ctx, b, Work{Dir: b.dir, URL: url, River: river})
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func scaleCostsOf(ctx context.Context, b *bench, w Work) (rows [][]string, err error) {
	c, end, err := b.costing(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if !w.River {
		if err := pause(ctx, restful); err != nil {
			return nil, err
		}
		if c.idle, err = c.m.rate(ctx, idleTime); err != nil { // of the server itself
			return nil, err
		}
		if rows, err = c.lines(ctx, costsInProcess(b)); err != nil {
			return nil, err
		}
		beats, err := c.heartbeats(ctx)
		return append(rows, beats), err
	}
	idle := &idleWorkers{w: w}
	defer func() { err = errors.Join(err, idle.end()) }()
	var seconds [2]cost
	for i, loops := range []int{1, 11} {
		if err := idle.grow(loops); err != nil {
			return nil, err
		}
		if err := errors.Join(awaitLoops(ctx, c.app, loops), pause(ctx, restful)); err != nil {
			return nil, err
		}
		if seconds[i], err = c.m.rate(ctx, 2*idleTime); err != nil {
			return nil, err
		}
		if i > 0 {
			break
		}
		c.idle = seconds[i]
		if rows, err = c.lines(ctx, costsOnWorkers()); err != nil {
			return nil, err
		}
	}
	one, more := seconds[0].cells(), seconds[1].minus(seconds[0]).times(0.1).cells()
	return append(rows, append([]string{"a second of one idle worker, which leads"}, one...), append([]string{"a second of one more idle worker"}, more...)), nil
}

// restful is the time until the first polls of workers are over.
const restful = 3 * time.Second

// heartbeats is the cost of a second of a job that waits.
func (c *costing) heartbeats(ctx context.Context) ([]string, error) {
	ended := make(chan error, 1)
	go func() {
		ended <- c.job(ctx, "job: sleeps\nflow:\n- {step: sleep, tasklet: {sql: select pg_sleep(26)}}\n", nil)
	}()
	if err := pause(ctx, restful); err != nil {
		return nil, err
	}
	second, err := c.m.rate(ctx, 2*idleTime)
	return append([]string{"a heartbeat of a job (each 5 s)"}, second.minus(c.idle).times(5).cells()...), errors.Join(err, <-ended)
}

// manyParts are the parts of the section parts.
const manyParts = 10_000

// scaleParts runs one step of 10,000 parts that do nothing.
func scaleParts(ctx context.Context, b *bench) (rows [][]string, err error) {
	rows = [][]string{{"10,000 parts", "time", "statements", "write transactions", "log of the server", "server CPU", "rows of the history", "size of the history"}}
	for _, how := range []string{inProcess, onAWorker} {
		row, err := partsRow(ctx, b, how)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		fmt.Fprintln(os.Stderr, row)
	}
	return rows, nil
}

func partsRow(ctx context.Context, b *bench, how string) (row []string, err error) {
	url, err := b.scaleDatabase(ctx, "parts")
	if err != nil {
		return nil, err
	}
	w := Work{Dir: b.dir, URL: url, River: how == onAWorker}
	c, end, err := b.costing(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	name := "in the process of the job, 4 at a time"
	if w.River {
		name = "on two workers of 4 slots each"
		idle := &idleWorkers{w: w}
		defer func() { err = errors.Join(err, idle.end()) }()
		for range 2 {
			if err := idle.grow(idle.loops + 1); err != nil {
				return nil, err
			}
		}
		if err := awaitLoops(ctx, c.app, 2); err != nil {
			return nil, err
		}
	}
	before, err := c.m.history(ctx)
	if err != nil {
		return nil, err
	}
	got, err := c.m.during(ctx, func() error { return c.job(ctx, partsJob(manyParts, how), nil) })
	if err != nil {
		return nil, err
	}
	after, err := c.m.history(ctx)
	row = append([]string{name, timeText(got.seconds)}, got.cells()...)
	return append(row, countOf(after.rows-before.rows), bytesText(after.bytes-before.bytes)), err
}

type historySize struct{ rows, bytes float64 }

// history is the size of the history, with its indexes and the rows that are dead.
func (m *meter) history(ctx context.Context) (h historySize, err error) {
	var tables []string
	err = m.conn.QueryRow(ctx, `SELECT array_agg(relname::text), sum(pg_total_relation_size(oid))::float8 FROM pg_class
		WHERE relkind = 'r' AND relname LIKE 'surfin\_%' AND relnamespace = 'public'::regnamespace`).Scan(&tables, &h.bytes)
	if err != nil {
		return h, err
	}
	for _, table := range tables {
		var n float64
		if err := m.conn.QueryRow(ctx, "SELECT count(*)::float8 FROM "+table).Scan(&n); err != nil {
			return h, err
		}
		h.rows += n
	}
	return h, nil
}
