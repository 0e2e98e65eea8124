package browser

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const ordersJob = `job: orders
description: Loads the orders of a day.
parameters:
  file: {type: path, default: orders.csv}
flow:
- step: table
  tasklet: {sql: "create table if not exists orders (id bigint primary key, customer text, amount decimal(15,2))"}
- step: load
  chunk:
    size: 3
    skip: {limit: 2}
    reader:
      csv: {path: "${params.file}", item: {id: int, customer: string, amount: {type: decimal, scale: 2}}}
    writer: {table: orders}
`

// Lines 3 and 5 are skipped; the third mistake, in line 9, fails the step.
const orders = "id,customer,amount\n1,ann,3.50\n2,bob,6,50\n3,eve,9.50\n4,joe,1O.50\n5,kim,15.50\n6,lea,18.50\n7,max,21.50\n8,ned,2x.50\n9,oda,27.50\n"

func TestAFailedExecutionIsBroughtToItsEndWithCorrectedRows(t *testing.T) {
	t.Parallel()
	eachPerson(t, map[string]string{"jobs/orders.yaml": ordersJob, "jobs/orders.csv": orders}, func(t *testing.T, s *scene, p person) {
		p.signsIn("/jobs/orders")
		p.follows("Run it")
		p.fills("reason", "the first of the night")
		p.presses("Run")
		p.sees("Execution 1 of job orders failed", "orders.csv:9: character 7: field amount")

		p.opens("/executions/1/skips")
		p.follows("Correct and redrive")
		p.fills("text.1", "2,bob,6.50")
		p.fills("text.2", "4,joe,1o.50")
		p.presses("Check")
		p.sees("1 of 2 items would be processed.", `"1o.50" is not a decimal`)
		p.fills("text.2", "4,joe,12.50")
		p.presses("Check")
		p.sees("2 of 2 items would be processed.")
		p.presses("Redrive those that are chosen")
		p.sees("Execution 2 of job orders completed")

		s.write("jobs/orders.csv", strings.Replace(orders, "2x.50", "24.50", 1))
		p.opens("/executions/1")
		p.follows("restart it")
		p.sees("What the restart does", "changed since it was read")
		p.ticks("accept_changes")
		p.presses("Show this plan")
		p.sees("the items are the first after its last commit", "4 read: 4 written")
		p.presses("Restart execution 1")
		p.sees("Execution 3 of job orders completed", "balanced")

		rows := s.does(0, "sql", "select count(*) as n, count(distinct id) as ids, sum(amount) as amount from orders")
		require.Contains(t, rows, "139.5")
		require.Regexp(t, `9\D+9\D`, rows)
		p.opens("/executions/3/audit")
		p.sees("anna")
	})
}

func TestARunIsStoppedAndResumedFromItsPage(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s, server := acting(t, dbURL, map[string]string{"jobs/gate.yaml": gateJob})
		b := newTab(t, server.at, "stopping")
		b.signIn(annaToken, "/jobs/gate")
		b.click("main", "Run it")
		b.fill("params.n", "1")
		require.EqualValues(t, http.StatusOK, b.button("Run"))
		b.await(`document.querySelector("h1").innerText.includes("running")`)
		b.click("main", "stop it")
		b.look("stop")
		require.EqualValues(t, http.StatusOK, b.button("Stop execution 1"))
		b.await(`document.querySelector("h1").innerText === "Execution 1 of job gate stopped"`)
		s.write("jobs/go-1", "")
		b.click("main", "restart it")
		require.EqualValues(t, http.StatusOK, b.button("Restart execution 1"))
		b.await(`document.querySelector("h1").innerText === "Execution 2 of job gate completed"`)
	})
}

func TestAFormWhoseReplyIsLostIsDoneOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s, server := acting(t, dbURL, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		p := newPlain(t, server)
		p.signsIn("/executions/1/restart")
		to, form := p.form("Restart execution 1")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.at+to, strings.NewReader(form.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range p.client.Jar.Cookies(r.URL) {
			r.AddCookie(c)
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.URL.Host)
		require.NoError(t, err)
		require.NoError(t, r.Write(conn))
		require.NoError(t, conn.Close())
		p.presses("Restart execution 1")
		require.Equal(t, "/executions/2", p.at)
		p.sees("Execution 2 of job payments failed")
		status, _ := server.get("/executions/3", p.client)
		require.Equal(t, http.StatusNotFound, status)
	})
}
