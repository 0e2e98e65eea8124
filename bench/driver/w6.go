package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// A process makes a call that often, and returns the median; less often if the calls take long.
const (
	calls     = 200
	fewCalls  = 5
	callsTime = time.Second
)

const shortHistory = "w6-short"

// historyRows is the length of the history in its targets. A shorter one is
// enough for a quick check.
const historyRows = 200_000

func w6() Workload {
	contestants := []Contestant{inside{name: "a row by its primary key", run: rowByKey}, inside{name: pageByHand, run: pagesByHand}}
	for _, l := range lookups() {
		contestants = append(contestants, inside{name: oursPrefix + " " + l.name, run: l.run})
	}
	for _, short := range []bool{true, false} {
		name := "launch in a long history"
		if short {
			name = "launch in a short history"
		}
		contestants = append(contestants, inside{name: oursPrefix + " " + name, run: func(ctx context.Context, w Work) (Result, error) { return launches(ctx, w, short) }})
	}
	return Workload{
		Name: "w6", Title: "a history with an execution for each row, on PostgreSQL: one call", Part: true, Most: historyRows, Contestants: contestants,
		Prepare: func(ctx context.Context, b *bench, w *Work) error {
			if err := errors.Join(b.server.template(ctx, w.Workload), b.server.template(ctx, shortHistory)); err != nil {
				return err
			}
			w.URL, w.Keep = b.server.urlOf(templateOf(w.Workload)), true
			file, err := nightlyJob(b.dir)
			if err != nil {
				return err
			}
			return longHistory(ctx, w.URL, file, w.Rows)
		},
	}
}

type lookup struct {
	name string
	ask  func(ctx context.Context, app *batch.App, at moments) error
}

type moments struct {
	completed, failed core.JobExecutionID
	skip              int64
	file              string
}

func lookups() []lookup {
	list := func(name string, req func(at moments) operator.ListRequest) lookup {
		return lookup{"list " + name, func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.List(ctx, req(at))
			return err
		}}
	}
	show := func(name string, req func(at moments) operator.ShowRequest) lookup {
		return lookup{"show " + name, func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Show(ctx, req(at))
			return err
		}}
	}
	explain := func(name string, of func(at moments) core.JobExecutionID) lookup {
		return lookup{"explain " + name, func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Explain(ctx, operator.ExplainRequest{Execution: of(at)})
			return err
		}}
	}
	return append([]lookup{
		list("the newest", func(moments) operator.ListRequest { return operator.ListRequest{} }),
		list("a page in the middle", func(at moments) operator.ListRequest { return operator.ListRequest{Before: at.failed} }),
		list("the failed of a job", func(at moments) operator.ListRequest {
			return operator.ListRequest{Job: "nightly", Statuses: []core.Status{core.StatusFailed}, Before: at.failed}
		}),
		list("by exit code", func(moments) operator.ListRequest { return operator.ListRequest{Exit: "COMPLETED"} }),
		list("since an hour ago", func(moments) operator.ListRequest { return operator.ListRequest{Since: time.Now().Add(-time.Hour)} }),
		list("what runs", func(moments) operator.ListRequest { return operator.ListRequest{Running: true} }),
		show("a completed one", func(at moments) operator.ShowRequest { return operator.ShowRequest{Execution: at.completed} }),
		show("a failed one with its audit", func(at moments) operator.ShowRequest {
			return operator.ShowRequest{Execution: at.failed, Audit: true, Partitions: true, Definition: true}
		}),
		explain("a completed one", func(at moments) core.JobExecutionID { return at.completed }),
		explain("a failed one", func(at moments) core.JobExecutionID { return at.failed }),
	}, otherLookups()...)
}

func otherLookups() []lookup {
	return []lookup{
		{"list instances", func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Instances(ctx, operator.InstancesRequest{Job: "nightly", Before: core.JobInstanceID(at.failed)})
			return err
		}},
		{"list jobs", func(ctx context.Context, app *batch.App, _ moments) error {
			_, err := app.Jobs(ctx)
			return err
		}},
		{"summary", func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Summary(ctx, operator.SummaryRequest{Execution: at.completed})
			return err
		}},
		{"progress", func(ctx context.Context, app *batch.App, _ moments) error {
			_, err := app.Progress(ctx, operator.ProgressRequest{})
			return err
		}},
		{"skips of an execution", func(ctx context.Context, app *batch.App, at moments) error {
			page, err := app.Skips(ctx, operator.SkipsRequest{Execution: at.failed})
			if err == nil && len(page.Items) != 1 {
				err = fmt.Errorf("there are %d skipped items, not 1", len(page.Items))
			}
			return err
		}},
		{"one skipped item", func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Skip(ctx, at.skip)
			return err
		}},
		{"skips export", func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.ExportSkips(ctx, operator.SkipsRequest{Execution: at.failed}, io.Discard)
			return err
		}},
		{"the instance that a run would take", func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Choose(ctx, operator.RunRequest{File: at.file, Params: nights(int(at.failed) - 1)})
			return err
		}},
		{"dry run of a restart", func(ctx context.Context, app *batch.App, at moments) error {
			_, err := app.Plan(ctx, operator.PlanRequest{File: at.file, Params: nights(int(at.failed) - 1)})
			return err
		}},
		{"registered jobs", func(ctx context.Context, app *batch.App, _ moments) error {
			_, err := app.Definitions(ctx)
			return err
		}},
		{"schedules", func(ctx context.Context, app *batch.App, _ moments) error {
			_, err := app.Schedules(ctx, operator.SchedulesRequest{})
			return err
		}},
	}
}

func (l lookup) run(ctx context.Context, w Work) (r Result, err error) {
	app, err := openApp(ctx, w, w.URL)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	even := core.JobExecutionID(w.Rows / 4 * 2)
	at := moments{completed: even + 1, failed: even + 2, file: filepath.Join(filepath.Dir(w.Dir), "nightly.yaml")}
	page, err := app.Skips(ctx, operator.SkipsRequest{Execution: at.failed})
	if err != nil {
		return r, err
	}
	if len(page.Items) > 0 {
		at.skip = page.Items[0].ID
	}
	return medianOf(func(int) error { return l.ask(ctx, app, at) }, nothingAfter)
}

func medianOf(call func(i int) error, after func() error) (r Result, err error) {
	var times []float64
	for first := time.Now(); len(times) < calls && (len(times) < fewCalls || time.Since(first) < callsTime); {
		begin := time.Now()
		if err := call(len(times)); err != nil {
			return r, err
		}
		times = append(times, time.Since(begin).Seconds())
		if err := after(); err != nil {
			return r, err
		}
	}
	return Result{Seconds: spreadOf(times).median}, nil
}

func rowByKey(ctx context.Context, w Work) (Result, error) {
	return byHand(ctx, w, func(conn *pgx.Conn, i int) error {
		rows, err := conn.Query(ctx, "SELECT * FROM surfin_job_execution WHERE id = $1", w.Rows/2+i)
		if err != nil {
			return err
		}
		_, err = pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
		return err
	})
}

// byHand repeats a query of the database without us, and returns the median.
func byHand(ctx context.Context, w Work, ask func(conn *pgx.Conn, i int) error) (r Result, err error) {
	conn, err := pgx.Connect(ctx, w.URL)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return medianOf(func(i int) error { return ask(conn, i) }, nothingAfter)
}

const pageByHand = "a page of 50 executions, by hand"

// pageQuery is the query of a page of a list.
const pageQuery = `SELECT e.id, e.instance_id, e.job_name, e.attempt, e.status, e.exit_code, e.error_text, e.definition_path, e.owner,
	e.lease_until, e.created_at, e.started_at, e.ended_at, e.redrive_of, e.parent_id, e.gate,
	(SELECT string_agg(p.name || '=' || p.value, ', ') FROM surfin_job_execution_param p WHERE p.job_execution_id = e.id),
	(SELECT max(n.id) FROM surfin_job_execution n WHERE n.instance_id = e.instance_id),
	(SELECT n.status FROM surfin_job_execution n WHERE n.instance_id = e.instance_id ORDER BY n.id DESC LIMIT 1),
	(SELECT count(*) FROM surfin_step_execution s WHERE s.job_execution_id = e.id AND s.status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING')),
	(SELECT count(*) FROM surfin_step_execution s WHERE s.job_execution_id = e.id AND s.status = 'UNKNOWN')
	FROM surfin_job_execution e WHERE e.id < $1 ORDER BY e.id DESC LIMIT 50`

type pageRow struct {
	ID, Instance                     int64
	Job                              string
	Attempt                          int
	Status, Exit, Error, File, Owner string
	Lease, Created, Started, Ended   *time.Time
	RedriveOf, Parent                *int64
	Gate                             string
	Params                           *string
	NewestID                         int64
	NewestStatus                     string
	Unfinished, Uncertain            int64
}

func pagesByHand(ctx context.Context, w Work) (Result, error) {
	return byHand(ctx, w, func(conn *pgx.Conn, i int) error {
		rows, err := conn.Query(ctx, pageQuery, w.Rows/2+i)
		if err != nil {
			return err
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pageRow])
		if err == nil && len(page) != 50 {
			err = fmt.Errorf("there are %d executions on a page, not 50", len(page))
		}
		return err
	})
}

func nothingAfter() error { return nil }

// launches is the time until an execution exists and begins.
func launches(ctx context.Context, w Work, short bool) (r Result, err error) {
	url := w.URL
	if short {
		if url, err = withDatabase(url, templateOf(shortHistory)); err != nil {
			return r, err
		}
	}
	app, err := openApp(ctx, w, url)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	file := filepath.Join(w.Dir, "launched.yaml")
	if err := os.WriteFile(file, []byte("job: nightly\nparameters: {night: {type: int}}\nflow:\n- step: one\n  tasklet: {sql: select 1}\n"), 0o600); err != nil {
		return r, err
	}
	first := int(time.Now().UnixMicro()) // of no other process
	var running *operator.Running
	return medianOf(func(i int) error {
		running, err = app.Start(ctx, batch.RunRequest{File: file, Params: nights(first + i)})
		return err
	}, func() error {
		_, err := running.Wait()
		return err
	})
}
