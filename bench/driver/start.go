package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// start is a process that runs a job of one tasklet, from its start to its end.
func start() Workload {
	const job = "job: start\n" + jobParameters + "flow:\n- step: one\n  tasklet: {sql: select 1}\n"
	nothing := inside{name: "a Go process that does nothing", run: func(context.Context, Work) (Result, error) { return Result{}, nil }}
	onSQLite := inside{name: oursPrefix + " a tasklet, new SQLite file", run: func(ctx context.Context, w Work) (Result, error) {
		return runJob(ctx, w, "sqlite:"+filepath.Join(w.Dir, "surfin.db"), job)
	}}
	onPostgres := inside{name: oursPrefix + " a tasklet, PostgreSQL", run: func(ctx context.Context, w Work) (Result, error) {
		return runJob(ctx, w, w.URL, job)
	}}
	threeSteps := inside{name: oursPrefix + " three tasklets in a process that has run them before, PostgreSQL", run: again}
	return Workload{
		Name: "start", Title: "the start of a process with one tasklet", Metric: started,
		Contestants: []Contestant{nothing, onSQLite, onPostgres, threeSteps, spring{name: springPrefix + ", a tasklet", work: "tasklet", once: true}},
		Prepare:     withHistory,
	}
}

// again is the time of a job of three tasklets, from the request to the end.
func again(ctx context.Context, w Work) (r Result, err error) {
	app, err := openApp(ctx, w, w.URL)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	file := filepath.Join(w.Dir, "three.yaml")
	const job = "job: three\nparameters: {night: {type: int}}\nflow:\n- {step: one, tasklet: {sql: select 1}}\n" +
		"- {step: two, tasklet: {sql: select 2}}\n- {step: three, tasklet: {sql: select 3}}\n"
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		return r, err
	}
	return medianOf(func(i int) error {
		exec, err := app.Run(ctx, batch.RunRequest{File: file, Params: nights(i)})
		if err == nil && exec.Status != core.StatusCompleted {
			err = fmt.Errorf("execution %d is %s: %s", exec.ID, exec.Status, exec.Error)
		}
		return err
	}, nothingAfter)
}

// peak compares the memory of one job with that job's memory for ten times the rows.
func peak() Workload {
	job := loadJob(1000, rowItem, "", "")
	return Workload{
		Name: "memory", Title: "peak RSS of csv to PostgreSQL at chunks of 1000, with a tenth of the rows and with all", Metric: memory, Share: 2,
		Contestants: []Contestant{
			inside{name: oursPrefix + " a tenth of the rows", run: func(ctx context.Context, w Work) (Result, error) {
				return runJob(ctx, tenthOf(w), w.URL, job)
			}},
			inside{name: oursPrefix + " all rows", run: func(ctx context.Context, w Work) (Result, error) {
				return runJob(ctx, w, w.URL, job)
			}},
			spring{name: springPrefix + ", a tenth of the rows", work: "load", chunk: 1000, once: true, of: tenthOf},
			spring{name: springPrefix + ", all rows", work: "load", chunk: 1000, once: true},
		},
		Prepare: func(ctx context.Context, b *bench, w *Work) error {
			w.URL = b.server.url
			t := tenthOf(*w)
			if _, err := writeSales(t.Input, t.Rows, b.seed); err != nil {
				return err
			}
			return b.server.template(ctx, w.Workload, salesTable("sale"))
		},
		Check: func(ctx context.Context, w Work, _ Result) error {
			if !strings.Contains(w.Contestant, "tenth") {
				return checkTable(ctx, w, "sale")
			}
			conn, err := pgx.Connect(ctx, w.URL)
			if err != nil {
				return err
			}
			defer conn.Close(ctx) //nolint:errcheck // it has only read
			var rows int
			if err := conn.QueryRow(ctx, "SELECT count(*) FROM sale").Scan(&rows); err != nil {
				return err
			}
			if rows != w.Rows/10 {
				return fmt.Errorf("%d rows were written, and %d were to be", rows, w.Rows/10)
			}
			return nil
		},
	}
}

// tenthOf is the work with the first tenth of its rows, in a file next to the input.
func tenthOf(w Work) Work {
	w.Rows /= 10
	w.Input = strings.TrimSuffix(w.Input, ".csv") + "-tenth.csv"
	return w
}
