package browser

import (
	"testing"

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
	return []string{"Execution 1 of job payments failed", "payments.csv:9", "field amount"}
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
		require.Contains(t, b.text("h1"), "1 execution needs you")
		b.look("now")
		b.click("main", "1")
		text := b.text("main")
		for _, want := range why() {
			require.Contains(t, text, want)
		}
		b.look("execution")
	})
}
