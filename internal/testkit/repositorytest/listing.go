package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func listingTests() []test {
	return []test{
		{"every combination of filters lists what it says, newest first, page by page", filtersAgree},
		{"a filter of times finds executions with times out of the order of their ids", timesOutOfOrder},
		{"instances are found by key and listed newest first by key", listsInstances},
		{"jobs are listed by name with their newest executions", listsJobs},
		{"no listing of ten thousand executions reads or sorts the whole table", listingsUseIndexes},
	}
}

func randomExecutions(b *bench, random *rand.Rand, pick func(list ...string) string) {
	for n := range int64(40) {
		req := b.request("a", n/2)
		req.JobName = pick("load", "report")
		if n > 10 && random.IntN(4) == 0 {
			req.RedriveOf = core.JobExecutionID(1 + random.IntN(3))
		}
		if random.IntN(2) == 0 {
			req.Task = 1 + random.Int64N(3)
		}
		launched, err := b.repo.Launch(b.ctx, req)
		if err != nil {
			continue // that instance runs
		}
		if to := core.Status(pick("FAILED", "STOPPED", "")); to != "" {
			b.change(jobRef(launched.Execution), ports.JobChange{To: to, ExitCode: pick("FAILED", "RED", "BLUE")})
		}
	}
}

func filtersAgree(b *bench) {
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	randomExecutions(b, random, pick)
	d := b.db.Dialect()
	at := "created_at + CAST((40 - id) % 7 AS integer) * 1000000"
	switch d {
	case tx.Postgres:
		at = "created_at + (40 - id) % 7 * interval '1 second'"
	case tx.MySQL:
		at = "created_at + interval (40 - id) % 7 second"
	case tx.SQLite:
	}
	b.exec("UPDATE %sjob_execution SET created_at = " + strings.ReplaceAll(at, "%", "%%"))
	all, err := b.repo.Executions(b.ctx, ports.ExecutionFilter{Limit: 1000})
	require.NoError(b, err)
	require.Greater(b, len(all), 20)
	for range 300 {
		f := ports.ExecutionFilter{Limit: 1 + random.IntN(5)}
		some := all[random.IntN(len(all))]
		if random.IntN(2) == 0 {
			f.JobName = some.JobName
		}
		if random.IntN(4) == 0 {
			f.Instance = some.InstanceID
		}
		if random.IntN(3) == 0 {
			f.ExitCode = pick("FAILED", "RED", "BLUE")
		}
		if random.IntN(4) == 0 {
			f.RedriveOf = core.JobExecutionID(1 + random.IntN(3))
		}
		if random.IntN(4) == 0 {
			f.Task = 1 + random.Int64N(3)
		}
		for _, s := range []core.Status{core.StatusFailed, core.StatusStopped, core.StatusStarting} {
			if random.IntN(3) == 0 {
				f.Statuses = append(f.Statuses, s)
			}
		}
		if random.IntN(3) == 0 {
			f.CreatedFrom = some.CreatedAt
		}
		if random.IntN(3) == 0 {
			f.CreatedTo = all[random.IntN(len(all))].CreatedAt
		}
		var want []core.JobExecutionID
		for _, e := range all {
			if selects(f, e) {
				want = append(want, e.ID)
			}
		}
		var got []core.JobExecutionID
		for page := f; ; {
			ids := b.list(page)
			got = append(got, ids...)
			if len(ids) < f.Limit {
				break
			}
			page.Before = ids[len(ids)-1]
		}
		require.Equal(b, want, got, "%+v", f)
	}
}

func selects(f ports.ExecutionFilter, e core.JobExecution) bool {
	return (f.JobName == "" || e.JobName == f.JobName) &&
		(f.Instance == 0 || e.InstanceID == f.Instance) &&
		(f.ExitCode == "" || e.ExitCode == f.ExitCode) &&
		(f.RedriveOf == 0 || e.RedriveOf == f.RedriveOf) &&
		(f.Task == 0 || e.Task == f.Task) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, e.Status)) &&
		(f.CreatedFrom.IsZero() || !e.CreatedAt.Before(f.CreatedFrom)) &&
		(f.CreatedTo.IsZero() || e.CreatedAt.Before(f.CreatedTo))
}

func timesOutOfOrder(b *bench) {
	for day := range int64(5) {
		b.launch("a", day)
	}
	shift := func(id int, by string) {
		if b.db.Dialect() == tx.Postgres {
			b.exec(fmt.Sprintf("UPDATE %%sjob_execution SET created_at = created_at + interval '%s' WHERE id = %d", by, id))
			return
		}
		d, err := time.ParseDuration(strings.ReplaceAll(by, " minutes", "m"))
		require.NoError(b, err)
		if b.db.Dialect() == tx.MySQL {
			b.exec(fmt.Sprintf("UPDATE %%sjob_execution SET created_at = created_at + interval %d microsecond WHERE id = %d", d.Microseconds(), id))
			return
		}
		b.exec(fmt.Sprintf("UPDATE %%sjob_execution SET created_at = created_at + %d WHERE id = %d", d.Microseconds(), id))
	}
	for id := range 5 { // SQLite's clock has milliseconds: two launches may have the same
		shift(id+1, fmt.Sprintf("%d minutes", id))
	}
	shift(2, "5000 minutes")
	shift(4, "-5000 minutes")
	at := func(id core.JobExecutionID) time.Time { return b.execution(id).CreatedAt }
	require.Equal(b, []core.JobExecutionID{2}, b.list(ports.ExecutionFilter{CreatedFrom: at(5).Add(time.Minute)}))
	require.Equal(b, []core.JobExecutionID{4}, b.list(ports.ExecutionFilter{CreatedTo: at(1)}))
	require.Equal(b, []core.JobExecutionID{5, 3}, b.list(ports.ExecutionFilter{CreatedFrom: at(3), CreatedTo: at(2)}))
	require.Empty(b, b.list(ports.ExecutionFilter{CreatedFrom: at(2), CreatedTo: at(2)}), "the end is not in it")
	require.Len(b, b.list(ports.ExecutionFilter{CreatedFrom: at(4)}), 5)
}

func listsInstances(b *bench) {
	var all []ports.JobInstance
	for day := range int64(7) {
		exec := b.launch("a", day)
		all = append([]ports.JobInstance{{ID: exec.InstanceID, JobName: "load", Key: exec.Params.Key(), BaseKey: exec.Params.Key()}}, all...)
	}
	req := b.request("a", 1)
	req.JobName = "report"
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)

	var paged []ports.JobInstance
	for filter := (ports.InstanceFilter{JobName: "load", Limit: 3}); ; {
		page, err := b.repo.Instances(b.ctx, filter)
		require.NoError(b, err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		filter.Before = page[len(page)-1].ID
	}
	require.Equal(b, all, paged)
	list, err := b.repo.Instances(b.ctx, ports.InstanceFilter{})
	require.NoError(b, err)
	require.Len(b, list, 8)
	require.Equal(b, launched.Execution.InstanceID, list[0].ID)

	found, err := b.repo.Instance(b.ctx, "load", all[2].Key)
	require.NoError(b, err)
	require.Equal(b, all[2], *found)
	_, err = b.repo.Instance(b.ctx, "other", all[2].Key)
	require.ErrorIs(b, err, core.ErrNotFound)
}

func listsJobs(b *bench) {
	none, err := b.repo.Jobs(b.ctx)
	require.NoError(b, err)
	require.Empty(b, none)
	last := map[string]core.JobExecution{}
	for _, name := range []string{"report", "load", "archive"} {
		for day := range int64(3) {
			for range 2 {
				req := b.request("a", day)
				req.JobName = name
				launched, err := b.repo.Launch(b.ctx, req)
				require.NoError(b, err)
				b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusFailed})
				newest, err := b.repo.Execution(b.ctx, launched.Execution.ID)
				require.NoError(b, err)
				last[name] = briefly(*newest)
			}
		}
	}
	list, err := b.repo.Jobs(b.ctx)
	require.NoError(b, err)
	var want []core.JobExecution
	for _, name := range []string{"archive", "load", "report"} {
		want = append(want, last[name])
	}
	require.Equal(b, want, list)
}

func (b *bench) seed(n int) {
	b.Helper()
	series := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", n)
	at := "1700000000000000 + i * 60000000"
	analyze := "ANALYZE"
	switch b.db.Dialect() {
	case tx.Postgres:
		at = "to_timestamp(1700000000) + i * interval '1 minute'"
	case tx.MySQL:
		at, analyze = "from_unixtime(1700000000) + interval i minute", "ANALYZE TABLE {job_instance}, {job_execution}, {step_execution}"
	case tx.SQLite:
	}
	text := strings.Repeat("x", 500)
	for _, statement := range []string{
		"INSERT INTO {job_instance} (job_name, instance_key, created_at) " + series + "SELECT 'job' || (i % 10), 'key' || i, " + at + " FROM n",
		"INSERT INTO {job_execution} (instance_id, job_name, attempt, status, exit_code, definition_text, owner, epoch, lease_until, created_at, started_at, ended_at) " +
			series + "SELECT i, 'job' || (i % 10), 1, CASE WHEN i % 20 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, CASE WHEN i % 20 = 0 THEN 'FAILED' WHEN i % 500 = 1 THEN 'RARE' ELSE 'COMPLETED' END, '" + text + "', 'h/b/1/2/n', 1, " +
			at + ", " + at + ", " + at + ", " + at + " FROM n",
		"INSERT INTO {step_execution} (job_execution_id, job_name, name, status, owner, epoch, started_at) " + series + "SELECT i, 'job' || (i % 10), 'load', 'COMPLETED', 'h/b/1/2/n', 1, " + at + " FROM n",
		analyze,
	} {
		statement = strings.NewReplacer("{", b.Prefix, "}", "").Replace(statement)
		_, err := b.db.Conn().ExecContext(b.ctx, statement)
		require.NoError(b, err, statement)
	}
}

func listingsUseIndexes(b *bench) {
	const n = 10_000
	b.seed(n)
	w := b.watch()
	b.filtersUseIndexes(w)
	b.lookupsUseIndexes(w)
}

func (b *bench) filtersUseIndexes(w *watched) {
	b.Helper()
	from := time.Unix(1700000000, 0).Add(3000 * time.Minute)
	soon := time.Unix(1700000000, 0).Add(9990 * time.Minute) // a few are equally new
	failed := []core.Status{core.StatusFailed}
	for _, f := range []ports.ExecutionFilter{
		{}, {Before: 5000}, {JobName: "job3"}, {JobName: "job3", Before: 5000}, {Instance: 77}, {ExitCode: "RARE"}, {ExitCode: "RARE", JobName: "job1"},
		{Statuses: failed}, {Statuses: failed, JobName: "job0"}, {Statuses: statuses()}, {Statuses: statuses(), JobName: "job0", Before: 9000},
		{Statuses: failed, ExitCode: "FAILED"}, {RedriveOf: 5}, {Task: 5},
		{CreatedFrom: from, CreatedTo: from.Add(time.Hour)}, {CreatedTo: from}, {CreatedFrom: from, JobName: "job3"},
		{CreatedFrom: from}, {CreatedFrom: soon}, {CreatedFrom: soon, JobName: "job3"}, {CreatedFrom: soon, Statuses: statuses()},
		{CreatedFrom: from, CreatedTo: from.Add(24 * time.Hour), Statuses: failed},
	} {
		begin := time.Now()
		_, err := b.repo.Executions(b.ctx, f)
		require.NoError(b, err)
		timed := !f.CreatedFrom.IsZero() || !f.CreatedTo.IsZero()
		b.planned(w, fmt.Sprintf("%+v (%v)", f, time.Since(begin)), timed)
		_, err = b.repo.ExecutionIDs(b.ctx, f)
		require.NoError(b, err)
		b.planned(w, fmt.Sprintf("ids of %+v", f), timed)
	}
}

func (b *bench) lookupsUseIndexes(w *watched) {
	b.Helper()
	failed := []core.Status{core.StatusFailed}
	old := time.Unix(1700000000, 0).Add(30 * time.Minute)
	page, err := b.repo.ExecutionIDs(b.ctx, ports.ExecutionFilter{})
	require.NoError(b, err)
	w.take()
	var instances []core.JobInstanceID
	for _, id := range page {
		instances = append(instances, core.JobInstanceID(id)) // as seeded
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"jobs", func() error { _, err := b.repo.Jobs(b.ctx); return err }},
		{"judged", func() error { _, err := b.repo.Judged(b.ctx, ports.JudgedRequest{IDs: page}); return err }},
		{"one judged", func() error { _, err := b.repo.Judged(b.ctx, ports.JudgedRequest{IDs: page[:1]}); return err }},
		{"steps of executions", func() error { _, err := b.repo.StepsOf(b.ctx, page...); return err }},
		{"last executions", func() error { _, err := b.repo.LastExecutions(b.ctx, instances...); return err }},
		{"newest attempts", func() error { _, err := b.repo.NewestAttempts(b.ctx, dead, instances...); return err }},
		{"instances", func() error { _, err := b.repo.Instances(b.ctx, ports.InstanceFilter{}); return err }},
		{"instances of job", func() error {
			_, err := b.repo.Instances(b.ctx, ports.InstanceFilter{JobName: "job4", Before: 8000})
			return err
		}},
		{"instance", func() error { _, err := b.repo.Instance(b.ctx, "job4", "key4"); return err }},
		{"audit", func() error { _, err := b.repo.Audit(b.ctx, 77); return err }},
		{"steps", func() error { _, err := b.repo.Steps(b.ctx, 77); return err }},
		{"last steps", func() error { _, err := b.repo.LastSteps(b.ctx, 77, 0); return err }},
		{"execution", func() error { _, err := b.repo.Execution(b.ctx, 77); return err }},
		{"launch", func() error { _, err := b.repo.Launch(b.ctx, b.request("a", 1)); return err }},
		{"recover", func() error { _, err := b.repo.Recover(b.ctx, operator, nil); return err }},
		{"abandon", func() error { return b.repo.Abandon(b.ctx, 20, ports.By{Actor: operator}) }},
		{"purge", func() error {
			_, err := b.repo.Purge(b.ctx, ports.PurgeFilter{EndedBefore: old, KeepLast: 5}, operator)
			return err
		}},
		{"purge of a job, dry", func() error {
			_, err := b.repo.Purge(b.ctx, ports.PurgeFilter{EndedBefore: old, JobName: "job0", Statuses: failed, DryRun: true}, operator)
			return err
		}},
		{"purge of an instance", func() error {
			_, err := b.repo.Purge(b.ctx, ports.PurgeFilter{Instance: 9999}, operator)
			return err
		}},
		{"newest repetition", func() error {
			_, err := b.repo.Instances(b.ctx, ports.InstanceFilter{JobName: "job4", BaseKey: "key4", Limit: 1})
			return err
		}},
		{"newest instance", func() error {
			_, err := b.repo.Instances(b.ctx, ports.InstanceFilter{JobName: "job4", OnlyBase: true, Limit: 1})
			return err
		}},
		{"attempt spans", func() error { _, err := b.repo.AttemptSpans(b.ctx, 77, 100); return err }},
		{"step spans", func() error { _, err := b.repo.StepSpans(b.ctx, 77, 0, 1000); return err }},
		{"holds", func() error { _, _, err := b.repo.Holds(b.ctx, 77, 0); return err }},
		{"task spans", func() error { _, err := b.repo.TaskSpans(b.ctx, []core.StepExecutionID{77, 78}, 1000); return err }},
		{"child spans", func() error { _, err := b.repo.ChildSpans(b.ctx, page, 1000); return err }},
		{"parted steps", func() error { _, err := b.repo.PartedSteps(b.ctx, 77); return err }},
		{"part counts", func() error { _, err := b.repo.PartCounts(b.ctx, 77); return err }},
		{"last purged", func() error { _, err := b.repo.LastPurged(b.ctx, "job4"); return missing(err) }},
	} {
		begin := time.Now()
		require.NoError(b, c.do(), c.name)
		b.planned(w, fmt.Sprintf("%s (%v)", c.name, time.Since(begin)), false)
	}
}

func missing(err error) error {
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	return err
}

// planned has the database explain the executed statements: it must not read or sort a whole table
// of thousands of rows.
func (b *bench) planned(w *watched, what string, timed bool) {
	b.Helper()
	b.Log(what)
	explain := "EXPLAIN QUERY PLAN "
	if b.db.Dialect() == tx.Postgres {
		explain = "EXPLAIN "
	}
	for _, s := range w.take() {
		if strings.HasPrefix(s.text, "INSERT") || b.db.Dialect() == tx.MySQL { // its plans of small tables say nothing
			continue
		}
		require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
			rows, err := tx.ConnOf(ctx, b.db).QueryContext(ctx, explain+s.text, s.args...)
			if err != nil {
				return err
			}
			plan, err := lastColumns(rows)
			for _, line := range strings.Split(plan, "\n") {
				if b.reads(line, timed) {
					require.Fail(b, "reads or sorts a whole table", "%s\n%s\n%s", what, s.text, plan)
				}
			}
			return err
		}), s.text)
	}
}

func (b *bench) reads(line string, timed bool) bool {
	if b.db.Dialect() == tx.Postgres {
		for _, table := range []string{"job_instance", "job_execution", "step_execution"} {
			if strings.Contains(line, "Seq Scan on "+b.Prefix+table+" ") {
				return true
			}
		}
		var from, to float64
		var rows int
		if _, rest, found := strings.Cut(line, "Sort  (cost="); found {
			_, err := fmt.Sscanf(rest, "%f..%f rows=%d", &from, &to, &rows)
			return err != nil || rows > 1000 && !timed
		}
		return false
	}
	if strings.Contains(line, "TEMP B-TREE FOR ORDER BY") {
		return !timed
	}
	return strings.HasPrefix(line, "SCAN ") && !strings.HasPrefix(line, "SCAN page") && !strings.HasPrefix(line, "SCAN json_each") && !strings.HasPrefix(line, "SCAN h") &&
		!slices.Contains([]string{"SCAN jobs", "SCAN CONSTANT ROW", "SCAN bounds", "SCAN m", "SCAN w"}, line) &&
		!strings.Contains(line, "USING") && !strings.HasSuffix(line, b.Prefix+"job_execution") && !strings.HasSuffix(line, b.Prefix+"job_instance")
}
