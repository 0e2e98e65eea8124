package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// nightly is a job that leaves a bit of everything in the history.
const nightly = `job: nightly
parameters: {night: {type: int}}
flow:
- step: load
  chunk:
    size: 10
    reader: {csv: {path: "%s", item: {id: int, name: string}}}
    writer: {table: {name: loaded, create: true}}
    skip: {limit: 5}
- decide: enough
  choose:
  - {when: steps.load.written > 100, next: publish}
  - next: publish
- step: publish
  tasklet: {sql: "select 1 / (1 - mod(${params.night}, 2))"}
`

// nightlyJob writes the job file and its input, always the same: a plan
// compares it with the one in the history.
func nightlyJob(dir string) (string, error) {
	input, file := filepath.Join(dir, "nightly.csv"), filepath.Join(dir, "nightly.yaml")
	text := "id,name\n" + strings.Repeat("1,a\n", 9) + "x,b\n"
	return file, errors.Join(os.WriteFile(input, []byte(text), 0o600), os.WriteFile(file, fmt.Appendf(nil, nightly, input), 0o600))
}

func nights(night int) map[string]string { return map[string]string{"night": fmt.Sprint(night)} }

// longHistory runs the job for two nights, and copies them until there are
// that many executions.
func longHistory(ctx context.Context, url, file string, executions int) (err error) {
	w := Work{Dir: filepath.Dir(file)}
	app, err := openApp(ctx, w, url)
	if err != nil {
		return err
	}
	for night, want := range []core.Status{core.StatusCompleted, core.StatusFailed} {
		exec, err := app.Run(ctx, batch.RunRequest{File: file, Params: nights(night)})
		if err != nil {
			return errors.Join(err, app.Close(ctx))
		}
		if exec.Status != want || int(exec.ID) != night+1 {
			return errors.Join(fmt.Errorf("execution %d of night %d is %s: %s", exec.ID, night, exec.Status, exec.Error), app.Close(ctx))
		}
	}
	if err := app.Close(ctx); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return copyHistory(ctx, conn, executions)
}

func copyHistory(ctx context.Context, conn *pgx.Conn, executions int) error {
	// Foreign keys are not checked meanwhile: the checks take long.
	for _, text := range []string{"SET synchronous_commit = off", "SET session_replication_role = replica"} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return err
		}
	}
	if err := copyInstances(ctx, conn, executions); err != nil {
		return err
	}
	const execution = "t.job_execution_id + 2 * n"
	const steps = "(SELECT max(id) FROM surfin_step_execution WHERE job_execution_id <= 2)"
	copies := executions/2 - 1
	for _, c := range []struct {
		table    string
		replaced map[string]string // empty means the column's default
	}{
		{"job_execution", map[string]string{"id": "t.id + 2 * n", "instance_id": "t.instance_id + 2 * n",
			"created_at": fmt.Sprintf("t.created_at - make_interval(secs => %d - n)", copies), "ended_at": fmt.Sprintf("t.ended_at - make_interval(secs => %d - n)", copies)}},
		{"job_execution_param", map[string]string{"job_execution_id": execution, "value": "CASE t.name WHEN 'night' THEN (t.value::bigint + 2 * n)::text ELSE t.value END"}},
		{"step_execution", map[string]string{"id": "t.id + n * " + steps, "job_execution_id": execution, "first_id": "CASE t.first_id WHEN 0 THEN 0 ELSE t.first_id + n * " + steps + " END"}},
		{"flow_visit", map[string]string{"job_execution_id": execution}},
		{"skipped_item", map[string]string{"id": "", "job_execution_id": execution, "step_execution_id": "t.step_execution_id + n * " + steps}},
		{"audit", map[string]string{"id": "", "job_execution_id": execution, "step_execution_id": "CASE t.step_execution_id WHEN 0 THEN 0 ELSE t.step_execution_id + n * " + steps + " END"}},
	} {
		if err := copyRecords(ctx, conn, "surfin_"+c.table, copies, c.replaced); err != nil {
			return fmt.Errorf("copy %s: %w", c.table, err)
		}
	}
	for _, table := range []string{"job_instance", "job_execution", "step_execution"} {
		if _, err := conn.Exec(ctx, fmt.Sprintf("SELECT setval(pg_get_serial_sequence('surfin_%[1]s', 'id'), (SELECT max(id) FROM surfin_%[1]s))", table)); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}

func copyInstances(ctx context.Context, conn *pgx.Conn, executions int) error {
	now, night := time.Now(), 1
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"surfin_job_instance"}, []string{"id", "job_name", "instance_key", "base_key", "created_at"}, pgx.CopyFromFunc(func() ([]any, error) {
		if night++; night >= executions {
			return nil, nil
		}
		params, err := core.NewParameters(core.Parameter{Name: "night", Type: core.TypeInt, Value: int64(night), Identifying: true})
		return []any{int64(night + 1), "nightly", params.Key(), params.BaseKey(), now}, err
	}))
	return err
}

// copyRecords copies the rows of a table, with the replaced columns as expressions over the row t and
// the number of the copy n.
func copyRecords(ctx context.Context, conn *pgx.Conn, table string, copies int, replaced map[string]string) error {
	rows, err := conn.Query(ctx, "SELECT column_name FROM information_schema.columns WHERE table_name = $1 AND table_schema = 'public'", table)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	columns = slices.DeleteFunc(columns, func(c string) bool { v, ok := replaced[c]; return ok && v == "" })
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = "t." + c
		if v, ok := replaced[c]; ok {
			values[i] = v
		}
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM generate_series(1, %d) AS n, (SELECT * FROM %s) AS t ORDER BY n",
		table, strings.Join(columns, ", "), strings.Join(values, ", "), copies, table))
	return err
}
