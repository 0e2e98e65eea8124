package browser

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const paymentsJob = `job: payments
description: Books the payments of a day.
parameters:
  file: {type: path, default: payments.csv}
flow:
- step: table
  tasklet: {sql: "create table if not exists payment (id bigint primary key, account text, amount decimal(15,2))"}
- step: book
  chunk:
    size: 3
    reader:
      csv: {path: "${params.file}", item: {id: int, account: string, amount: {type: decimal, scale: 2}}}
    writer: {table: payment}
- step: report
  tasklet: {sql: "select count(*) from payment"}
`

// The amount in line 9 has a letter. The chunks before it have six rows.
const payments = "id,account,amount\n1,DE1,3.50\n2,DE2,6.50\n3,DE3,9.50\n4,DE4,12.50\n5,DE5,15.50\n6,DE6,18.50\n7,DE7,21.50\n8,DE8,2x.50\n9,DE9,27.50\n"

func paymentsFiles() map[string]string {
	return map[string]string{"jobs/payments.yaml": paymentsJob, "jobs/payments.csv": payments}
}

// why lists sentences that the page of the failed execution shows.
func why() []string {
	return []string{
		"Execution 1 of job payments failed", `payments.csv:9: character 7: field amount: "2x.50" is not a decimal`,
		"6 read, 6 written, committed up to line 7 of", "A restart passes table, resumes book after line 7 of",
	}
}

func TestFromTheFirstPageInTwoClicksOneReadsWhyAJobFailed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		server := s.serve()
		b := newTab(t, server.at, "failed")
		b.open("/")
		require.Contains(t, b.text("h1"), "1 needs you")
		b.look("now")
		b.click("main", "/executions/1")
		assertWhy(t, b.text("main"))
		b.look("execution")
	})
}

func TestByKeyboardAloneOneReadsWhyAJobFailed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		b := newTab(t, s.serve().at, "keyboard")
		for _, way := range []struct{ name, text string }{{"the row", ""}, {"the palette", "payments"}, {"the number", "1"}} {
			b.open("/")
			if way.text == "" {
				b.do(press("j"))
			} else {
				b.do(press("/"))
				b.await(`document.activeElement.closest("#palette")`)
				b.do(press(way.text))
				b.await(`document.querySelector("#palette a[href]")`)
				b.settle()
				b.do(press(kb.ArrowDown))
			}
			b.await(`document.activeElement.href`)
			require.EqualValues(t, 200, b.goes(press(kb.Enter)), way.name)
			if b.path() != "/executions/1" {
				b.tabTo("/executions/1")
				require.EqualValues(t, 200, b.goes(press(kb.Enter)), way.name)
			}
			assertWhy(t, b.text("main"))
		}
		b.open("/")
		b.tabTo("/executions/1")
		require.EqualValues(t, 200, b.goes(press(kb.Enter)))
		assertWhy(t, b.text("main"))
	})
}

func TestWithoutJavaScriptAPlainClientReadsWhyAJobFailed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		server := s.serve()
		status, first := server.get("/", http.DefaultClient)
		require.Equal(t, 200, status)
		link := regexp.MustCompile(`href="(/executions/\d+)"`).FindStringSubmatch(first)
		require.NotNil(t, link, first)
		status, page := server.get(link[1], http.DefaultClient)
		require.Equal(t, 200, status)
		assertWhy(t, withoutTags(page))
	})
}

const goneJob = `job: other
flow:
- step: nothing
  tasklet: {sql: select 1}
`

func TestAnExecutionOfAYearAgoWhoseJobFileIsGoneIsStillExplained(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		files := paymentsFiles()
		files["jobs/other.yaml"], files["jobs/payments2.csv"] = goneJob, payments
		s := newScene(t, url, files)
		s.does(1, "run", "jobs/payments.yaml")
		s.does(1, "run", "jobs/payments.yaml", "file=jobs/payments2.csv")
		s.aYearAgo()
		// The second one is of an older program: this one does not know a component of it.
		s.does(0, "sql", "--write", "update surfin_job_execution set definition_text = replace(definition_text, 'tasklet: {sql', 'tasklet: {procedure') where id = 2")
		require.NoError(t, os.Remove(filepath.Join(s.dir, "jobs/payments.yaml")))
		b := newTab(t, s.serve().at, "gone")
		b.open("/")
		b.look("now")
		b.click("main", "/executions/1")
		assertWhy(t, b.text("main"))
		b.look("execution")
		b.click("nav", "definition")
		require.Contains(t, b.text("main"), "Books the payments of a day.")
		b.look("definition")
		b.open("/executions/2")
		text := b.text("main")
		require.Contains(t, text, "payments2.csv:2 with an error of class unique")
		require.Contains(t, text, "procedure")
		b.look("older")
		b.open("/jobs/payments")
		b.look("job")
	})
}

// aYearAgo makes all executions a year older.
func (s *scene) aYearAgo() {
	s.t.Helper()
	before := func(column string) string {
		if isPostgres(s.url) {
			return column + " - interval '365 days'"
		}
		return column + " - 365 * 86400 * 1000000"
	}
	for table, columns := range map[string][]string{
		"surfin_job_instance": {"created_at"}, "surfin_job_execution": {"created_at", "started_at", "ended_at", "job_time"},
		"surfin_step_execution": {"started_at", "ended_at"},
	} {
		var set []string
		for _, c := range columns {
			set = append(set, c+" = "+before(c))
		}
		s.does(0, "sql", "--write", "update "+table+" set "+strings.Join(set, ", "))
	}
}

func assertWhy(t testing.TB, text string) {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range why() {
		require.Contains(t, text, want)
	}
}
