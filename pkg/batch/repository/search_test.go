package repository_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// findVariable sets the number of executions in the history of the test.
const findVariable = "SURFIN_TEST_FIND"

func historySize(n int) int {
	if number, err := strconv.Atoi(os.Getenv(findVariable)); err == nil {
		return number
	}
	return n
}

// begun is when the first execution of a searched history was created; each follows a second later.
var begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// searchedHistory fills the tables; searchConditions has the conditions that its executions fulfil.
func searchedHistory(t *testing.T, db tx.Database, n int) {
	t.Helper()
	d := db.Dialect()
	at := func(seconds string) string {
		if d == tx.Postgres {
			return "(timestamptz '2026-01-01 00:00:00Z' + (" + seconds + ") * interval '1 second')"
		}
		return fmt.Sprintf("(%d + (%s) * 1000000)", begun.UnixMicro(), seconds)
	}
	truth := map[tx.Dialect]string{tx.Postgres: "(%s)", tx.SQLite: "CASE WHEN %s THEN 1 ELSE 0 END"}[d]
	exec := func(text string) {
		_, err := db.Conn().ExecContext(t.Context(), strings.NewReplacer("{now}", gormtx.Now(d), "{numbers}", "("+numbers(d, n)+") AS x").Replace(text))
		require.NoError(t, err, text)
	}
	exec(`INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) SELECT n, 'job ' || (n % 7), 'k' || n, {now} FROM {numbers}`)
	exec(`INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, exit_code, error_text, active, stop_requested, definition_text, owner, epoch, redrive_of, lease_until, created_at, started_at, ended_at)
		SELECT n, n, 'job ' || (n % 7), 1,
			CASE WHEN n % 5000 = 1 THEN 'STARTED' WHEN n % 97 = 0 THEN 'STOPPED' WHEN n % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END,
			CASE WHEN n % 5000 = 1 THEN '' WHEN n % 97 = 0 THEN 'STOPPED' WHEN n % 50 = 0 THEN 'FAILED' WHEN n % 61 = 0 THEN 'NEARLY' ELSE 'COMPLETED' END,
			CASE WHEN n % 50 <> 0 OR n % 97 = 0 THEN '' WHEN n % 150 = 0 THEN 'lost owner' ELSE 'step s1: Connection refused by host-' || (n % 3) END,
			CASE WHEN n % 5000 = 1 THEN 1 END, ` + fmt.Sprintf(truth, "n % 97 = 0") + `, '` + strings.Repeat("a job file ", 300) + `', CASE WHEN n % 5000 = 1 THEN 'hosta/b/7/s/z' ELSE '' END, 1,
			CASE WHEN n % 311 = 0 THEN n - 1 END, CASE WHEN n % 5000 = 1 THEN ` + at("n + 60") + ` END, ` + at("n") + `, ` + at("n") + `, CASE WHEN n % 5000 <> 1 THEN ` + at("n + n % 100") + ` END FROM {numbers}`)
	exec(`INSERT INTO surfin_job_execution_param (job_execution_id, name, type, value, identifying)
		SELECT n, 'customer', 'string', 'c' || (n % 1000), ` + fmt.Sprintf(truth, "1 = 0") + ` FROM {numbers}
		UNION ALL SELECT n, 'amount', 'decimal', (n % 500) || '.5', ` + fmt.Sprintf(truth, "1 = 1") + ` FROM {numbers}
		UNION ALL SELECT n, 'note', 'string', '` + strings.Repeat("long ", 100) + `' || (n % 900), ` + fmt.Sprintf(truth, "1 = 1") + ` FROM {numbers} WHERE n % 300 = 0`)
	for i, owner := range []string{"'hosta/b/' || (n % 9) || '/s/z'", "'hostb/b/' || (n % 4) || '/s/z'"} {
		exec(fmt.Sprintf(`INSERT INTO surfin_step_execution (id, job_execution_id, job_name, name, status, exit_code, error_text, owner, epoch, started_at, assigned_from, position)
			SELECT 2 * n + %d, n, 'job ' || (n %% 7), 's%d', 'COMPLETED', 'COMPLETED', CASE WHEN n %% 777 = 0 THEN 'Straße %d%%: falsch' ELSE '' END, %s, 1, {now},
			CASE WHEN n %% 800 = 0 THEN 'x/b/1/s/z hostc/b/1/s/z' ELSE '' END, '%s' FROM {numbers}`, i, i, i, owner, strings.Repeat("position ", 20)))
	}
	exec(`INSERT INTO surfin_skipped_item (job_execution_id, step_execution_id, phase, redriven_by, created_at)
		SELECT n, 2 * n, 'read', CASE WHEN n % 600 = 0 THEN n + 1 END, {now} FROM {numbers} WHERE n % 300 = 0
		UNION ALL SELECT n, 2 * n, 'read', NULL, {now} FROM {numbers} WHERE n % 900 = 0`)
	exec(`INSERT INTO surfin_audit (at, act, actor, job_execution_id, verb, person)
		SELECT {now}, 'launch', 'o', n, CASE WHEN n % 4 = 3 THEN '' ELSE 'run' END,
			CASE n % 4 WHEN 0 THEN 'ada' WHEN 1 THEN 'adam' WHEN 2 THEN 'API client ci' ELSE '' END FROM {numbers}
		UNION ALL SELECT {now}, 'request stop', 'o', n, 'stop', 'ada (root@host)' FROM {numbers} WHERE n % 97 = 0
		UNION ALL SELECT {now}, 'purge', 'o', n + ` + strconv.Itoa(n) + `, 'purge', 'ada' FROM {numbers} WHERE n < 5`)
	exec(`INSERT INTO surfin_worker (name, capacity, types, owner, started_at, heartbeat_at, lease_until) VALUES ('blue', 1, '[]', 'hosta/b/3/s/z', {now}, {now}, {now})`)
	if d == tx.Postgres { // PostgreSQL does this by itself, but later
		exec("ANALYZE")
	}
}

// condition is a condition of a search; is reports whether execution n fulfils it.
type condition struct {
	// Two conditions of one field cannot hold together.
	field, name string
	set         func(s *ports.ExecutionSearch)
	is          func(n int) bool
}

func second(n int) time.Time { return begun.Add(time.Duration(n) * time.Second) }

func searchConditions(size int) []condition {
	running := func(n int) bool { return n%5000 == 1 }
	failed := func(n int) bool { return n%50 == 0 && n%97 != 0 && !running(n) }
	param := func(name, value string, types ...core.ParameterType) func(s *ports.ExecutionSearch) {
		return func(s *ports.ExecutionSearch) {
			s.Params = append(s.Params, ports.ParameterMatch{Name: name, Values: []ports.ParameterText{{Types: types, Text: value}, {Types: types, Text: "never"}}})
		}
	}
	return []condition{
		{"job", "job", func(s *ports.ExecutionSearch) { s.Filter.JobName = "job 3" }, func(n int) bool { return n%7 == 3 }},
		{"status", "statuses", func(s *ports.ExecutionSearch) {
			s.Filter.Statuses = []core.Status{core.StatusFailed, core.StatusStopped}
		}, func(n int) bool { return failed(n) || n%97 == 0 && !running(n) }},
		{"exit", "exit code", func(s *ports.ExecutionSearch) { s.Filter.ExitCode = "NEARLY" }, func(n int) bool {
			return n%61 == 0 && n%50 != 0 && n%97 != 0 && !running(n)
		}},
		{"created", "a day of a year", func(s *ports.ExecutionSearch) {
			s.Filter.CreatedFrom, s.Filter.CreatedTo = second(size/2), second(size/2+700)
		}, func(n int) bool { return n >= size/2 && n < size/2+700 }},
		{"created", "created since", func(s *ports.ExecutionSearch) { s.Filter.CreatedFrom = second(size / 4) }, func(n int) bool { return n >= size/4 }},
		{"created", "created until", func(s *ports.ExecutionSearch) { s.Filter.CreatedTo = second(size - size/4) }, func(n int) bool { return n < size-size/4 }},
		{"c", "customer", param("customer", "c77", core.TypeString), func(n int) bool { return n%1000 == 77 }},
		{"amount", "amount", param("amount", "77.5", core.TypeDecimal, core.TypeFloat), func(n int) bool { return n%500 == 77 }},
		{"a", "a text that is a decimal", param("amount", "77.5", core.TypeString), func(int) bool { return false }},
		{"note", "a long value", param("note", strings.Repeat("long ", 100)+"300", core.TypeString), func(n int) bool { return n%900 == 300 }},
		{"text", "an error of the job", func(s *ports.ExecutionSearch) { s.Text = "connection REFUSED by host-1" }, func(n int) bool { return failed(n) && n%3 == 1 }},
		{"text", "an error of a step", func(s *ports.ExecutionSearch) { s.Text = "straße 1%" }, func(n int) bool { return n%777 == 0 }},
		{"text", "no pattern", func(s *ports.ExecutionSearch) { s.Text = "straße _" }, func(int) bool { return false }},
		{"text", "a text of an exit code", func(s *ports.ExecutionSearch) { s.Text = "near" }, func(n int) bool { return n%61 == 0 && n%50 != 0 && n%97 != 0 && !running(n) }},
		{"ended", "ended", func(s *ports.ExecutionSearch) { s.EndedFrom, s.EndedTo = second(900), second(1500) }, func(n int) bool {
			return !running(n) && n+n%100 >= 900 && n+n%100 < 1500
		}},
		{"ended", "ended since", func(s *ports.ExecutionSearch) { s.EndedFrom = second(size / 4) }, func(n int) bool { return !running(n) && n+n%100 >= size/4 }},
		{"ended", "ended until", func(s *ports.ExecutionSearch) { s.EndedTo = second(size - size/4) }, func(n int) bool { return !running(n) && n+n%100 < size-size/4 }},
		{"longer", "longer", func(s *ports.ExecutionSearch) { s.LongerThan = 97 * time.Second }, func(n int) bool { return running(n) || n%100 > 97 }},
		{"skips", "skips left", func(s *ports.ExecutionSearch) { s.SkipsLeft = true }, func(n int) bool { return n%300 == 0 && n%600 != 0 || n%900 == 0 }},
		{"redriven", "redriven", func(s *ports.ExecutionSearch) { s.Redriven = true }, func(n int) bool { return (n+1)%311 == 0 && n < size }},
		{"stop", "stop requested", func(s *ports.ExecutionSearch) { s.StopRequested = true }, func(n int) bool { return n%97 == 0 }},
		{"lost", "lost", func(s *ports.ExecutionSearch) { s.Lost = true }, func(n int) bool { return running(n) || n%150 == 0 && n%97 != 0 }},
		{"actor", "an actor", func(s *ports.ExecutionSearch) { s.Actor = "ada" }, func(n int) bool { return n%4 == 0 || n%97 == 0 }},
		{"actor", "a client", func(s *ports.ExecutionSearch) { s.Actor = "ci" }, func(n int) bool { return n%4 == 2 }},
		{"worker", "a worker", func(s *ports.ExecutionSearch) { s.Worker = "blue" }, func(n int) bool { return n%9 == 3 }},
		{"worker", "a host", func(s *ports.ExecutionSearch) { s.Worker = "hostc" }, func(n int) bool { return n%800 == 0 }},
		{"worker", "a process", func(s *ports.ExecutionSearch) { s.Worker = "hostb:2" }, func(n int) bool { return n%4 == 2 }},
	}
}

// Rule OP10.
func TestASearchFindsByAllItsConditionsInBothDirections(t *testing.T) {
	t.Parallel()
	const n = 6000
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		searchedHistory(t, db, n)
		conditions := searchConditions(n)
		random := rand.New(rand.NewPCG(3, 5))
		sets := [][]condition{}
		for _, c := range conditions {
			sets = append(sets, []condition{c})
		}
		for range 150 {
			var set []condition
			for _, i := range random.Perm(len(conditions)) {
				if c := conditions[i]; len(set) < 3 && !slices.ContainsFunc(set, func(o condition) bool { return o.field == c.field }) {
					set = append(set, c)
				}
			}
			sets = append(sets, set[:2+random.IntN(2)])
		}
		for _, set := range sets {
			search := ports.ExecutionSearch{Budget: time.Duration(random.IntN(3)) * time.Millisecond, Filter: ports.ExecutionFilter{Limit: 1 + random.IntN(300)}}
			want, name := expected(set, n, &search)
			if random.IntN(2) == 0 {
				slices.Reverse(want)
				want, search.After = slices.DeleteFunc(want, func(id core.JobExecutionID) bool { return id == 1 }), 1
			}
			require.Equal(t, want, everyPage(t, r, search), "%s, after %d", name, search.After)
		}
	})
}

// expected sets the conditions, and returns the selected executions, newest first.
func expected(set []condition, n int, search *ports.ExecutionSearch) (want []core.JobExecutionID, name string) {
	want = []core.JobExecutionID{}
	for _, c := range set {
		c.set(search)
		name += c.name + ", "
	}
	for id := n; id > 0; id-- {
		if !slices.ContainsFunc(set, func(c condition) bool { return !c.is(id) }) {
			want = append(want, core.JobExecutionID(id))
		}
	}
	return want, name
}

func everyPage(t *testing.T, r ports.Searches, search ports.ExecutionSearch) []core.JobExecutionID {
	t.Helper()
	all := []core.JobExecutionID{}
	for {
		page, err := r.Search(t.Context(), search)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.IDs), search.Filter.Limit)
		all = append(all, page.IDs...)
		switch {
		case page.Reached == 0:
			return all
		case search.After > 0:
			require.Greater(t, page.Reached, search.After)
			search.After = page.Reached
		default:
			require.True(t, search.Filter.Before == 0 || page.Reached < search.Filter.Before)
			search.Filter.Before = page.Reached
		}
		require.False(t, page.ReachedAt.IsZero())
	}
}

// Rule OP10.
func TestAnExecutionWithManyFailedPartsIsSearchedWholly(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		now := gormtx.Now(db.Dialect())
		for _, text := range []string{
			"INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) SELECT n, 'load', 'k' || n, {now} FROM (" + numbers(db.Dialect(), 3) + ") AS x",
			`INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, owner, epoch, created_at)
				SELECT n, n, 'load', 1, 'FAILED', '', 1, {now} FROM (` + numbers(db.Dialect(), 3) + `) AS x`,
			`INSERT INTO surfin_step_execution (id, job_execution_id, job_name, name, status, error_text, owner, epoch, started_at)
				SELECT n, 1 + n / 2500, 'load', 's:' || n, 'FAILED', CASE n WHEN 3 THEN 'the first' WHEN 4999 THEN 'the last' ELSE 'refused' END, 'h/b/' || (n / 2400) || '/s/z', 1, {now}
				FROM (` + numbers(db.Dialect(), 5100) + `) AS x`,
		} {
			_, err := db.Conn().ExecContext(t.Context(), strings.ReplaceAll(text, "{now}", now))
			require.NoError(t, err, text)
		}
		for text, want := range map[string][]core.JobExecutionID{"the first": {1}, "the last": {2}, "refused": {3, 2, 1}, "other": {}, "the": {2, 1}} {
			search := ports.ExecutionSearch{Text: text, Filter: ports.ExecutionFilter{Limit: 1}}
			require.Equal(t, want, everyPage(t, r, search), text)
			search.Filter.JobName, search.Budget = "load", time.Second
			require.Equal(t, want, everyPage(t, r, search), text)
		}
		require.Equal(t, []core.JobExecutionID{1}, everyPage(t, r, ports.ExecutionSearch{Worker: "h:0", Filter: ports.ExecutionFilter{Limit: 5}}))
		require.Equal(t, []core.JobExecutionID{2, 1}, everyPage(t, r, ports.ExecutionSearch{Worker: "h:1", Filter: ports.ExecutionFilter{Limit: 5, Instance: 0}}))
	})
}

// Rule OP10.
func TestAPurgedExecutionIsNotFound(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		const n = 3000
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		searchedHistory(t, db, n)
		purged, err := r.Purge(t.Context(), ports.PurgeFilter{EndedBefore: second(n / 2)}, "ada")
		require.NoError(t, err)
		require.NotZero(t, purged.Executions)
		left, err := r.ExecutionIDs(t.Context(), ports.ExecutionFilter{Limit: n})
		require.NoError(t, err)
		for _, c := range searchConditions(n) {
			search := ports.ExecutionSearch{Budget: time.Second, Filter: ports.ExecutionFilter{Limit: 500}}
			want, name := expected([]condition{c}, n, &search)
			want = slices.DeleteFunc(want, func(id core.JobExecutionID) bool { return !slices.Contains(left, id) })
			if c.field == "redriven" { // the original of a redrive may have been purged
				continue
			}
			require.Equal(t, want, everyPage(t, r, search), name)
		}
		names, err := r.ParameterNames(t.Context(), 100)
		require.NoError(t, err)
		require.Equal(t, []string{"amount", "customer", "note"}, names)
	})
}
