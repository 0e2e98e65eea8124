package batchtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

const everydayJob = `
job: everyday
flow:
- step: load
  chunk:
    size: 3
    reader:
      group:
        reader: {files: {glob: in/*.csv, reader: {csv: {item: {shop: int, currency: string, amount: float}}}}}
        processor:
        - lookup: {from: {csv: {path: rates.csv, item: {currency: string, rate: float}}}, key: {currency: item.currency}, missing: skip}
        key: [shop]
        n: count()
        total: sum(item.amount * item.rate)
    processor: {dedupe: [shop]}
    writer:
      route:
      - {when: item.total > 100, name: large, writer: {table: {name: large, create: true}}}
      - {name: small, writer: {csv: out/small.csv}}
    skip: {limit: 99, errors: [parse]}
  promote: {route.large: large}
- step: note
  tasklet: {sql: "create table noted as select ${int(context.large ?? '0')} n"}
`

func TestComponentsThatKeepSomethingSurviveAKillAtEachCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("job.yaml")
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("job.yaml", everydayJob)
			e.File("rates.csv", "currency,rate\nEUR,1\nUSD,0.5\n")
			for i := range 3 {
				text := "shop,currency,amount\n"
				for shop := range 7 {
					for range shop*5 + 1 {
						text += fmt.Sprintf("%d,%s,%d\n", shop+i*5, []string{"EUR", "USD", "XXX"}[(shop+i)%3], shop*10)
					}
					text += strings.Repeat("bad,EUR,1\n", shop%2)
				}
				e.File(fmt.Sprintf("in/%d.csv", i), text)
			}
		}
	})
}

func TestARegisteredJobRunsByItsName(t *testing.T) {
	t.Parallel()
	job := batch.NewJob("greet").
		Parameter(batch.Parameter{Name: "day", Type: "date"}).
		Step("greet", batch.Do(func(_ context.Context, c *batch.StepContribution) error {
			day, err := c.Params.Date("day")
			c.Out = map[string]any{"day": day.String()}
			return err
		}))
	run := batchtest.New(t, batchtest.With(batch.Jobs(job))).Named("greet", "day=2026-11-20").Completed()
	require.Equal(t, "COMPLETED", run.Step("greet").ExitCode)
}
