package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The numbers of the history of w8, which do not depend on the rows.
const (
	consoleJobs    = 200
	consoleParts   = 1_000
	consoleManyOf  = 10_000
	consoleSkips   = 100_000
	consoleLog     = 1_000_000
	realParts      = 100
	failedNight    = 1 // of ten
	nightsApart    = 8 * 3600
	consoleFailure = "the totals differ from the ledger"
)

// consoleNightly is a job of w8: an execution leaves a bit of everything, and one of ten fails.
const consoleNightly = `job: %s
parameters: {night: {type: int}}
flow:
- step: load
  chunk:
    size: 10
    reader: {csv: {path: "nights-${params.night %% 10 == 1 ? 'bad' : 'good'}.csv", item: {id: int, name: string}}}
    writer: {table: {name: loaded, create: true}}
    skip: {limit: 5}
- decide: enough
  choose:
  - {when: steps.load.written > 100, next: publish}
  - next: balance
- step: balance
  tasklet: {fail: {if: "${params.night %% 10 == 1}", message: "night ${params.night}: ` + consoleFailure + `"}}
- step: publish
  tasklet: {sql: select 1}
`

// consoleParted has a part for each of its files, and one of them is wrong.
const consoleParted = `job: parted
parameters: {night: {type: int}}
flow:
- step: work
  partition: {by: {count: 100}, workers: 4}
  chunk:
    size: 10
    reader: {csv: {path: "part-${part.index == 7 ? 'bad' : 'good'}.csv", item: {id: int, name: string}}}
    writer: {table: {name: loaded, create: true}}
`

// consoleSkipped skips almost all of its rows.
const consoleSkipped = `job: skipped
parameters: {night: {type: int}}
flow:
- step: load
  chunk:
    size: 1000
    reader: {csv: {path: many-bad.csv, item: {id: int, name: string}}}
    writer: {table: {name: loaded, create: true}}
    skip: {limit: 1000000}
`

// consoleWatched commits ten times a second until it is stopped.
const consoleWatched = `job: watched
parameters: {night: {type: int}}
flow:
- step: tick
  chunk:
    size: 10
    reader: ticks
    writer: forget
`

// consoleHistory is the history of w8 in a database.
type consoleHistory struct {
	db       *sql.DB
	postgres bool
	jobs     string // the folder of the job files
	work     Work
	url      string
	// The executions that pages are about.
	Completed, Failed, Parts, ManyParts, Skips, Log core.JobExecutionID
	Skip                                            int64
}

// consoleFiles writes the job files and their input.
func consoleFiles(dir string) error {
	good, bad := "id,name\n"+strings.Repeat("1,a\n", 10), "id,name\n"+strings.Repeat("1,a\n", 9)+"x,b\n"
	files := map[string]string{
		"nights-good.csv": good, "nights-bad.csv": bad, "part-good.csv": good, "part-bad.csv": bad,
		"many-bad.csv": "id,name\n" + strings.Repeat("1,a\n", 1000) + strings.Repeat("x,b\n", consoleSkips),
		"parted.yaml":  consoleParted, "skipped.yaml": consoleSkipped, "watched.yaml": consoleWatched,
	}
	for n := range consoleJobs {
		files[consoleJob(n)+".yaml"] = fmt.Sprintf(consoleNightly, consoleJob(n))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func consoleJob(n int) string { return fmt.Sprintf("nightly-%03d", n) }

// fillConsole runs each job for two nights, copies them until there are that many executions, and runs the
// jobs with parts, skipped rows and a log.
func fillConsole(ctx context.Context, url, jobs string, executions int) (h *consoleHistory, err error) {
	h = &consoleHistory{postgres: !strings.HasPrefix(url, "sqlite:"), jobs: jobs, work: Work{Dir: jobs}, url: url}
	night := max(executions/consoleJobs, 2)
	if err := h.run(ctx, func(app *batch.App) error {
		for n := range 2 * consoleJobs {
			if _, err := h.runNight(ctx, app, consoleJob(n/2), n%2); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.db.Close()) }()
	if err := h.copyNights(ctx, night); err != nil {
		return nil, fmt.Errorf("copy the nights: %w", err)
	}
	at := core.JobExecutionID((night / 20 * 10) * consoleJobs)
	h.Completed, h.Failed = at+1, at+consoleJobs+1
	if err := h.run(ctx, func(app *batch.App) (err error) {
		if h.Log, err = h.runNight(ctx, app, consoleJob(0), night); err != nil {
			return err
		}
		if h.Skips, err = h.runNight(ctx, app, "skipped", 0); err != nil {
			return err
		}
		h.Parts, err = h.runNight(ctx, app, "parted", 0)
		return err
	}); err != nil {
		return nil, err
	}
	return h, h.enlarge(ctx)
}

// open opens the database for bulk statements.
func (h *consoleHistory) open() (err error) {
	driver, source := "pgx", h.url
	if !h.postgres {
		driver, source = "sqlite", "file:"+strings.TrimPrefix(h.url, "sqlite:")+"?_pragma=synchronous(off)&_pragma=cache_size(-200000)&_pragma=temp_store(memory)"
	}
	if h.db, err = sql.Open(driver, source); err == nil {
		h.db.SetMaxOpenConns(1) // settings are of the connection
	}
	return err
}

func (h *consoleHistory) run(ctx context.Context, work func(*batch.App) error) error {
	app, err := openApp(ctx, h.work, h.url)
	if err != nil {
		return err
	}
	return errors.Join(work(app), app.Close(ctx))
}

func (h *consoleHistory) runNight(ctx context.Context, app *batch.App, job string, night int) (core.JobExecutionID, error) {
	exec, err := app.Run(ctx, batch.RunRequest{File: filepath.Join(h.jobs, job+".yaml"), Params: nights(night)})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", job, err)
	}
	want := core.StatusCompleted
	if job == "parted" || night%10 == failedNight {
		want = core.StatusFailed
	}
	if exec.Status != want {
		err = fmt.Errorf("execution %d of %s, night %d, is %s: %s", exec.ID, job, night, exec.Status, exec.Error)
	}
	return exec.ID, err
}

// exec executes statements with the names of this dialect: {earlier} moves a time of a night to its own.
func (h *consoleHistory) exec(ctx context.Context, statements ...string) error {
	for _, text := range statements {
		if _, err := h.db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// before is an expression for a time that is that many seconds before another.
func (h *consoleHistory) before(column, seconds string) string {
	if h.postgres {
		return column + " - make_interval(secs => " + seconds + ")"
	}
	return column + " - 1000000 * (" + seconds + ")"
}

// series is a table expression of the numbers n from the first to the last.
func series(first, last int) string {
	return fmt.Sprintf("(WITH RECURSIVE numbers(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) SELECT n FROM numbers) AS series", first, last)
}

func (h *consoleHistory) count(ctx context.Context, query string) (n int64, err error) {
	if err = h.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		err = fmt.Errorf("%s: %w", query, err)
	}
	return n, err
}

// copyNights copies the executions of the first two nights: one of ten is a copy of the second.
func (h *consoleHistory) copyNights(ctx context.Context, night int) error {
	if err := h.hurry(ctx); err != nil {
		return err
	}
	if err := h.nightKeys(ctx, night); err != nil {
		return err
	}
	steps, err := h.count(ctx, "SELECT max(id) FROM surfin_step_execution")
	if err != nil {
		return err
	}
	id := fmt.Sprintf("n * %d + (%%s - 1) / 2 + 1", consoleJobs)
	execution := fmt.Sprintf(id, "t.job_execution_id")
	step := func(column string) string {
		return fmt.Sprintf("CASE %[1]s WHEN 0 THEN 0 ELSE %[1]s + n * %[2]d END", column, steps)
	}
	earlier := func(column string) string { return h.before(column, fmt.Sprintf("(%d - n) * %d", night, nightsApart)) }
	for _, c := range []copiedTable{
		{"job_instance", "id", replacedColumns{
			"id": fmt.Sprintf(id, "t.id"), "instance_key": "k.instance_key", "base_key": "k.base_key", "created_at": earlier("t.created_at"),
		}},
		{"instance_identity", "instance_id", replacedColumns{"instance_id": fmt.Sprintf(id, "t.instance_id"), "uid": "t.uid || '-' || n"}},
		{"job_execution", "id", replacedColumns{
			"id": fmt.Sprintf(id, "t.id"), "instance_id": fmt.Sprintf(id, "t.instance_id"), "created_at": earlier("t.created_at"), "started_at": earlier("t.started_at"),
			"ended_at": earlier("t.ended_at"), "job_time": earlier("t.job_time"), "error_text": "replace(t.error_text, 'night 1', 'night ' || n)",
		}},
		{"job_execution_param", "job_execution_id", replacedColumns{"job_execution_id": execution, "value": "CAST(n AS text)"}},
		{"step_execution", "job_execution_id", replacedColumns{
			"id": step("t.id"), "job_execution_id": execution, "first_id": step("t.first_id"), "started_at": earlier("t.started_at"), "ended_at": earlier("t.ended_at"),
			"error_text": "replace(t.error_text, 'night 1', 'night ' || n)",
		}},
		{"flow_visit", "job_execution_id", replacedColumns{"job_execution_id": execution, "created_at": earlier("t.created_at")}},
		{"skipped_item", "job_execution_id", replacedColumns{
			"id": "", "job_execution_id": execution, "step_execution_id": step("t.step_execution_id"), "created_at": earlier("t.created_at"),
		}},
		{"audit", "job_execution_id", replacedColumns{
			"id": "", "job_execution_id": execution, "step_execution_id": step("t.step_execution_id"), "at": earlier("t.at"),
		}},
	} {
		if err := h.copy(ctx, c, night); err != nil {
			return err
		}
	}
	return h.settle(ctx)
}

// copiedTable is a table with copied rows, by the column that has the number of the execution (or the
// instance, which is the same in the first nights), with the replaced columns as expressions over the row t,
// the number of the night n and the keys k of its instance.
type copiedTable struct {
	table, of string
	replaced  replacedColumns
}

type replacedColumns map[string]string // empty means the column's default

func (h *consoleHistory) copy(ctx context.Context, c copiedTable, night int) error {
	names, values, err := h.columns(ctx, c.table, c.replaced)
	if err != nil {
		return err
	}
	return h.exec(ctx, fmt.Sprintf(`INSERT INTO surfin_%[1]s (%[2]s) SELECT %[3]s FROM %[4]s JOIN night_key k ON k.night = n JOIN surfin_%[1]s t
		ON t.%[5]s <= %[6]d AND (t.%[5]s - 1) %% 2 = CASE WHEN n %% 10 = %[7]d THEN 1 ELSE 0 END ORDER BY n`,
		c.table, names, values, series(2, night-1), c.of, 2*consoleJobs, failedNight))
}

// columns are the names of a table's columns, and their values in a copy.
func (h *consoleHistory) columns(ctx context.Context, table string, replaced replacedColumns) (names, values string, err error) {
	query := "SELECT name FROM pragma_table_info('surfin_" + table + "')"
	if h.postgres {
		query = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'surfin_" + table + "'"
	}
	rows, err := h.db.QueryContext(ctx, query)
	if err != nil {
		return "", "", err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	var all, of []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", "", err
		}
		value, is := replaced[name]
		switch {
		case !is:
			value = "t." + name
		case value == "":
			continue
		}
		all, of = append(all, name), append(of, value)
	}
	return strings.Join(all, ", "), strings.Join(of, ", "), rows.Err()
}

// hurry makes the connection fast, and careless.
func (h *consoleHistory) hurry(ctx context.Context) error {
	if h.postgres { // foreign keys are not checked meanwhile: the checks take long
		return h.exec(ctx, "SET synchronous_commit = off", "SET session_replication_role = replica")
	}
	return h.exec(ctx, "PRAGMA foreign_keys = off")
}

// nightKeys is a table of the keys of instances, which are the same in all jobs.
func (h *consoleHistory) nightKeys(ctx context.Context, night int) error {
	var rows []string
	for n := range night {
		params, err := core.NewParameters(core.Parameter{Name: "night", Type: core.TypeInt, Value: int64(n), Identifying: true})
		if err != nil {
			return err
		}
		rows = append(rows, fmt.Sprintf("(%d, '%s', '%s')", n, params.Key(), params.BaseKey()))
	}
	return h.exec(ctx, "CREATE TEMPORARY TABLE night_key (night bigint PRIMARY KEY, instance_key text, base_key text)",
		"INSERT INTO night_key VALUES "+strings.Join(rows, ", "))
}

// settle sets the sequences behind the copies, and updates the statistics of the database.
func (h *consoleHistory) settle(ctx context.Context) error {
	if !h.postgres {
		return h.exec(ctx, "ANALYZE")
	}
	for _, table := range []string{"job_instance", "job_execution", "step_execution"} {
		if err := h.exec(ctx, fmt.Sprintf("SELECT setval(pg_get_serial_sequence('surfin_%[1]s', 'id'), (SELECT max(id) FROM surfin_%[1]s))", table)); err != nil {
			return err
		}
	}
	return h.exec(ctx, "VACUUM ANALYZE")
}

// enlarge gives the execution with parts two copies that have more of them, and one execution a long log.
func (h *consoleHistory) enlarge(ctx context.Context) (err error) {
	template := h.Parts
	for _, more := range []struct {
		to    *core.JobExecutionID
		parts int
	}{{&h.Parts, consoleParts}, {&h.ManyParts, consoleManyOf}} {
		if *more.to, err = h.copyParts(ctx, template, more.parts); err != nil {
			return fmt.Errorf("copy parts: %w", err)
		}
	}
	if err := h.copyLog(ctx); err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	if h.Skip, err = h.count(ctx, fmt.Sprintf("SELECT min(id) FROM surfin_skipped_item WHERE job_execution_id = %d", h.Skips)); err != nil {
		return err
	}
	return h.settle(ctx)
}

// copyParts copies an execution and its step, and each of its parts that many times.
func (h *consoleHistory) copyParts(ctx context.Context, of core.JobExecutionID, parts int) (core.JobExecutionID, error) {
	to, err := h.count(ctx, "SELECT max(id) + 1 FROM surfin_job_execution")
	if err != nil {
		return 0, err
	}
	steps, err := h.count(ctx, "SELECT max(id) FROM surfin_step_execution")
	if err != nil {
		return 0, err
	}
	instance, err := h.count(ctx, "SELECT max(id) + 1 FROM surfin_job_instance")
	if err != nil {
		return 0, err
	}
	factor := parts / realParts
	moved := func(column string) string {
		return fmt.Sprintf("CASE %[1]s WHEN 0 THEN 0 ELSE %[1]s + %[2]d + n * %[3]d END", column, steps, 1000)
	}
	number, key := fmt.Sprint(to), fmt.Sprintf("'%d-parts'", parts)
	part := replacedColumns{
		"id": moved("t.id"), "job_execution_id": number, "first_id": moved("t.first_id"),
		"manager_id": fmt.Sprintf("t.manager_id + %d", steps),
		"name":       fmt.Sprintf("CASE WHEN t.manager_id IS NULL THEN t.name ELSE 'work:' || (CAST(substr(t.name, 6) AS bigint) + %d * n) END", realParts),
	}
	counts := []string{"read_count", "filter_count", "write_count", "commit_count", "rollback_count"}
	for _, name := range counts {
		part[name] = fmt.Sprintf("CASE WHEN t.manager_id IS NULL THEN %d * t.%s ELSE t.%[2]s END", factor, name)
	}
	where := fmt.Sprintf("t.job_execution_id = %d AND (n = 0 OR t.manager_id IS NOT NULL)", of)
	ofStep := fmt.Sprintf("t.job_execution_id = %d AND (n = 0 OR t.step_execution_id IN (SELECT id FROM surfin_step_execution WHERE job_execution_id = %[1]d AND manager_id IS NOT NULL))", of)
	for _, c := range []struct {
		table, where string
		replaced     replacedColumns
	}{
		{"job_instance", fmt.Sprintf("n = 0 AND t.id = (SELECT instance_id FROM surfin_job_execution WHERE id = %d)", of), replacedColumns{"id": fmt.Sprint(instance), "instance_key": key, "base_key": key}},
		{"job_execution", fmt.Sprintf("n = 0 AND t.id = %d", of), replacedColumns{"id": number, "instance_id": fmt.Sprint(instance)}},
		{"job_execution_param", fmt.Sprintf("n = 0 AND t.job_execution_id = %d", of), replacedColumns{"job_execution_id": number, "value": fmt.Sprintf("'%d'", parts)}},
		{"step_execution", where, part},
		{"audit", ofStep, replacedColumns{"id": "", "job_execution_id": number, "step_execution_id": moved("t.step_execution_id")}},
	} {
		names, values, err := h.columns(ctx, c.table, c.replaced)
		if err != nil {
			return 0, err
		}
		err = h.exec(ctx, fmt.Sprintf("INSERT INTO surfin_%[1]s (%[2]s) SELECT %[3]s FROM %[4]s CROSS JOIN surfin_%[1]s t WHERE %[5]s ORDER BY n",
			c.table, names, values, series(0, factor-1), c.where))
		if err != nil {
			return 0, err
		}
	}
	return core.JobExecutionID(to), nil
}

// copyLog repeats the lines of a log until there are that many.
func (h *consoleHistory) copyLog(ctx context.Context) error {
	lines, err := h.count(ctx, fmt.Sprintf("SELECT max(seq) FROM surfin_log_line WHERE job_execution_id = %d", h.Log))
	if err != nil {
		return err
	}
	names, values, err := h.columns(ctx, "log_line", replacedColumns{"seq": fmt.Sprintf("t.seq + %d * n", lines), "number": fmt.Sprintf("t.number + %d * n", lines)})
	if err != nil {
		return err
	}
	repeats := consoleLog / int(lines)
	return h.exec(ctx,
		fmt.Sprintf("INSERT INTO surfin_log_line (%s) SELECT %s FROM %s CROSS JOIN surfin_log_line t WHERE t.job_execution_id = %d AND t.seq <= %d ORDER BY n",
			names, values, series(1, repeats-1), h.Log, lines),
		fmt.Sprintf("UPDATE surfin_execution_log SET line_count = line_count * %[1]d, byte_count = byte_count * %[1]d WHERE job_execution_id = %[2]d", repeats, h.Log))
}
