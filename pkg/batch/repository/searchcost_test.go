package repository_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Searches without a hit.
func vainSearches(size int) map[string]ports.ExecutionSearch {
	vain := map[string]ports.ExecutionSearch{
		"parameter":                {Params: []ports.ParameterMatch{{Name: "customer", Values: []ports.ParameterText{{Types: core.ParameterTypes(), Text: "nobody"}}}}},
		"frequent parameter, text": {Text: "no such text", Params: []ports.ParameterMatch{{Name: "amount", Values: []ports.ParameterText{{Types: core.ParameterTypes(), Text: "77.5"}}}}},
		"text":                     {Text: "no such text"},
		"job, text":                {Text: "no such text", Filter: ports.ExecutionFilter{JobName: "job 3"}},
		"ended":                    {EndedFrom: second(-100), EndedTo: second(-50)},
		"ended long ago":           {EndedTo: second(1)},
		"longer":                   {LongerThan: time.Hour * 1000000 / 2},
		"actor":                    {Actor: "nobody"},
		"worker":                   {Worker: "nobody"},
		"job, worker":              {Worker: "nobody", Filter: ports.ExecutionFilter{JobName: "job 3", Statuses: []core.Status{core.StatusFailed}}},
		"marks":                    {Lost: true, SkipsLeft: true, Redriven: true, StopRequested: true},
		"status and exit":          {StopRequested: false, LongerThan: 1, Filter: ports.ExecutionFilter{Statuses: []core.Status{core.StatusFailed}, ExitCode: "COMPLETED"}},
		"since, worker":            {Worker: "nobody", Filter: ports.ExecutionFilter{CreatedFrom: second(size / 2)}},
	}
	for name, search := range vain {
		search.Budget = 100 * time.Millisecond
		vain[name] = search
	}
	return vain
}

// genericPlan is the plan of PostgreSQL for a statement that a connection has executed several times: it does not know
// the values. It is empty on SQLite.
func genericPlan(t *testing.T, db tx.Database, q sentQuery) string {
	t.Helper()
	if db.Dialect() != tx.Postgres {
		return ""
	}
	pool, err := db.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	args := make([]string, len(q.args))
	for i, arg := range q.args {
		if args[i] = fmt.Sprintf("'%v'", arg); len(args[i]) > 200 && strings.HasPrefix(args[i], "'{") {
			args[i] = "'{1,2,3}'"
		}
		if at, is := arg.(time.Time); is {
			args[i] = "'" + at.Format(time.RFC3339Nano) + "'"
		}
	}
	execute := "EXECUTE q"
	if len(args) > 0 {
		execute += "(" + strings.Join(args, ", ") + ")"
	}
	for _, text := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE q AS " + q.text} {
		_, err := pool.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
	}
	found, err := pool.QueryContext(t.Context(), "EXPLAIN "+execute)
	require.NoError(t, err)
	defer func() { require.NoError(t, found.Close()) }()
	var lines []string
	for found.Next() {
		var line string
		require.NoError(t, found.Scan(&line))
		lines = append(lines, line)
	}
	require.NoError(t, found.Err())
	return strings.Join(lines, "\n")
}

var (
	scanned = regexp.MustCompile(`(?m)(?:Seq|Index|Index Only|Bitmap Heap) Scan.* rows=(\d+) loops=(\d+)\)$`)
	removed = regexp.MustCompile(`Rows Removed by (?:Filter|Index Recheck): (\d+)`)
)

// rowsRead is the number of rows of tables that PostgreSQL says it has read; 0 on SQLite.
func rowsRead(t *testing.T, plan string) (all int) {
	t.Helper()
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	for _, scan := range scanned.FindAllStringSubmatch(plan, -1) {
		all += number(scan[1]) * number(scan[2])
	}
	for _, filter := range removed.FindAllStringSubmatch(plan, -1) {
		all += number(filter[1])
	}
	return all
}

// Rule OP10.
func TestASearchWithoutAHitReadsBoundedPagesOverIndexes(t *testing.T) {
	t.Parallel()
	n := historySize(20_000)
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		searchedHistory(t, db, n)
		for name, search := range vainSearches(n) {
			w := &watched{Database: db}
			r := repository.New(w, repository.Options{})
			var slowest, all time.Duration
			pages := 0
			for {
				begun := time.Now()
				page, err := r.Search(t.Context(), search)
				require.NoError(t, err)
				took := time.Since(begun)
				slowest, all, pages = max(slowest, took), all+took, pages+1
				require.Empty(t, page.IDs, name)
				if search.Filter.Before = page.Reached; page.Reached == 0 {
					break
				}
			}
			t.Logf("%d executions on %s: %-24s %d pages in %v, the slowest %v, %d statements", n, db.Dialect(), name, pages, all, slowest, len(w.queries))
			seen := map[string]bool{}
			for _, query := range w.queries {
				if seen[query.text] {
					continue
				}
				seen[query.text] = true
				plan := planOf(t, db, query)
				if strings.Contains(query.text, "_at IS NOT NULL") && rowsRead(t, plan) > 0 {
					continue // PostgreSQL may well read a table of this size
				}
				for _, table := range []string{"job_execution", "job_execution_param", "step_execution", "audit"} {
					require.NotRegexp(t, `(?im)seq scan on surfin_`+table+`\b|scan (surfin_)?`+table+`\s*$|TEMP B-TREE FOR ORDER BY$`, plan, "%s\n%s", name, query.text)
				}
				require.LessOrEqual(t, rowsRead(t, plan), 20_000, "%s\n%s\n%s", name, query.text, plan)
				generic := genericPlan(t, db, query)
				if strings.Contains(query.text, "skipped_item") {
					continue // the table is too small for an index
				}
				require.NotRegexp(t, `(?m)Seq Scan on surfin_(job_execution|job_execution_param|step_execution|audit)\b|Sort Key: x\.`, generic, "%s\n%s", name, query.text)
				t.Log(name, query.text, "\n"+plan+"\n"+generic)
			}
		}
	})
}
