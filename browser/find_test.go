package browser

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const copiesJob = `job: copies
description: Copies the files of a site.
parameters: {night: {type: int}, site: {type: string, default: berlin}}
flow:
- step: copy
  tasklet: {shell: {script: '[ "$SITE" != north-7 ] || [ -e repaired ] || { echo "no space left on disk d7" >&2; exit 3; }', env: {SITE: "${params.site}"}}}
`

const (
	manyExecutions = 200_000
	everyFailed    = 667 // 300 of them
)

// manyCopies runs the job for two nights, one of them fails, and copies them by SQL.
func (s *scene) manyCopies() {
	s.t.Helper()
	s.does(0, "run", "jobs/copies.yaml", "night=1")
	s.does(1, "run", "jobs/copies.yaml", "night=2", "site=north-7")
	before := "%[1]s - (199998 - n) * 1000000"
	if isPostgres(s.url) {
		before = "%[1]s - (199998 - n) * interval '1 second'"
	}
	earlier := func(column string) string { return fmt.Sprintf(before, column) }
	series := fmt.Sprintf("with recursive s(n) as (select 1 union all select n + 1 from s where n < %d)", manyExecutions-2)
	of := fmt.Sprintf("case n %% %d when 0 then 2 else 1 end", everyFailed)
	const plain = "t.job_name, 1, t.status, t.exit_code, t.error_text, t.definition_hash, t.definition_text, t.definition_path, t.owner, 1, 1"
	for _, statement := range []string{
		"insert into surfin_job_instance (id, job_name, instance_key, base_key, created_at) " + series +
			" select n + 2, t.job_name, 'n' || n, 'n' || n, t.created_at from s, surfin_job_instance t where t.id = 1",
		"insert into surfin_job_execution (id, instance_id, job_name, attempt, status, exit_code, error_text, definition_hash, definition_text, definition_path, owner, epoch, step_count, created_at, started_at, ended_at) " +
			series + " select n + 2, n + 2, " + plain + ", " + earlier("t.created_at") + ", " + earlier("t.started_at") + ", " + earlier("t.ended_at") +
			" from s, surfin_job_execution t where t.id = " + of,
		"insert into surfin_job_execution_param (job_execution_id, name, type, value, identifying) " + series +
			" select n + 2, t.name, t.type, case t.name when 'night' then cast(n + 2 as text) else t.value end, t.identifying from s, surfin_job_execution_param t where t.job_execution_id = " + of,
		"insert into surfin_step_execution (job_execution_id, job_name, name, ordinal, element, status, exit_code, error_text, owner, epoch, started_at, ended_at) " + series +
			" select n + 2, t.job_name, t.name, t.ordinal, t.element, t.status, t.exit_code, t.error_text, t.owner, t.epoch, t.started_at, t.ended_at" +
			" from s, surfin_step_execution t where t.job_execution_id = 2 and n " + fmt.Sprintf("%% %d = 0", everyFailed),
		s.keysOfFailed(),
		"analyze",
	} {
		s.does(0, "sql", "--write", statement)
	}
	if isPostgres(s.url) {
		s.does(0, "sql", "--write", fmt.Sprintf("alter table surfin_job_execution alter id restart with %d", manyExecutions+1))
		s.does(0, "sql", "--write", "alter table surfin_step_execution alter id restart with 1000")
	}
}

// keysOfFailed gives the instances of the failed copies their keys, so that they can be restarted.
func (s *scene) keysOfFailed() string {
	var cases, ids strings.Builder
	for id := everyFailed + 2; id <= manyExecutions; id += everyFailed {
		params, err := core.NewParameters(core.Parameter{Name: "night", Type: core.TypeInt, Value: int64(id), Identifying: true}, core.Parameter{Name: "site", Type: core.TypeString, Value: "north-7", Identifying: true})
		require.NoError(s.t, err)
		fmt.Fprintf(&cases, " when %d then '%s'", id, params.Key())
		fmt.Fprintf(&ids, ", %d", id)
	}
	return "update surfin_job_instance set instance_key = case id" + cases.String() + " end where id in (0" + ids.String() + ")"
}

func TestFailedExecutionsAmongManyAreFoundByTextAndByParameter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s, server := acting(t, url, map[string]string{"jobs/copies.yaml": copiesJob})
		s.manyCopies()
		b := newTab(t, server.at, "find")
		b.signIn(annaToken, "/executions")
		var found []string
		for field, value := range map[string]string{"text": "SPACE left on disk", "param": "site:north-7"} {
			b.open("/executions")
			b.do(chromedp.Focus(chromedp.CSS("main input[name="+field+"]")), press(value))
			require.EqualValues(t, 200, b.goes(press(kb.Enter)))
			b.lookAt(field, twoViews())
			found = slices.Concat(b.pagesOfExecutions("older")...)
			require.Len(t, found, 300, field)
			require.Equal(t, "199435", found[0])
			require.Equal(t, "2", found[299])
		}
		back := b.pagesOfExecutions("newer")
		slices.Reverse(back)
		require.Equal(t, found, slices.Concat(back...), "the pages back show others")
		for asked, address := range map[string]string{
			"north-7": "/executions?param=site%3Anorth-7", "site=north-7": "/executions?param=site%3Anorth-7", "space left": "/executions?text=space+left", "199435": "/executions/199435",
		} {
			b.open("/")
			b.do(press("/"), press(asked))
			b.await(fmt.Sprintf(`[...document.querySelectorAll("#palette a")].some(a => a.getAttribute("href") === %q)`, address))
			b.settle()
			for range 10 {
				if evaluate[string](b, `document.activeElement.getAttribute("href") ?? ""`) == address {
					break
				}
				b.do(press(kb.ArrowDown))
			}
			require.EqualValues(t, 200, b.goes(press(kb.Enter)))
			require.Equal(t, address, b.path())
			require.Contains(t, b.text("main"), "199435")
		}
		s.restartsAll(b)
	})
}

// restartsAll restarts the 300 failed executions together. Two of them were given up.
func (s *scene) restartsAll(b *tab) {
	s.t.Helper()
	for _, id := range []string{"2", "669"} {
		s.does(0, "abandon", id)
	}
	b.open("/executions?text=space+left&param=site%3Anorth-7")
	b.click("main", "Act on all of them")
	b.await(says("Act on 300 executions", "execution 2: the last execution was abandoned", "execution 669: the last", "resume copy"))
	b.lookAt("bulk", twoViews())
	b.refused = true
	require.EqualValues(s.t, http.StatusUnprocessableEntity, b.button("Restart 300 executions"))
	b.await(says("type the number of executions, 300, to confirm"))
	b.fill("confirm", "300")
	b.fill("reason", "the disk was replaced")
	require.EqualValues(s.t, http.StatusOK, b.button("Restart 300 executions"))
	require.Equal(s.t, "/groups/1", b.path())
	b.do(stays())
	s.write("jobs/repaired", "")
	worker := s.worker()
	for deadline := time.Now().Add(2 * time.Minute); !evaluate[bool](b, says("SUCCEEDED 298", "FAILED 2", "execution 669: the last execution was abandoned")); time.Sleep(poll) {
		require.True(s.t, time.Now().Before(deadline), "%s\n%s", b.text("main"), worker.out.String())
	}
	require.True(s.t, evaluate[bool](b, `document.stays === true`), "the page was loaded again")
	b.open("/executions?job=copies&statuses=COMPLETED&param=site%3Anorth-7")
	require.Len(s.t, slices.Concat(b.pagesOfExecutions("older")...), 298)
}

// pagesOfExecutions are the numbers of the executions of this page of a list and of those after it, by their
// link.
func (b *tab) pagesOfExecutions(link string) [][]string {
	b.t.Helper()
	var pages [][]string
	for range 20 {
		pages = append(pages, evaluate[[]string](b, `[...document.querySelectorAll("main tbody th a")].map(a => a.innerText)`))
		if !strings.Contains("\n"+b.text("main nav.pager")+"\n", link) {
			return pages
		}
		b.click("main nav.pager", link)
	}
	b.t.Fatalf("%d pages are not all", len(pages))
	return nil
}
