package batchtest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// What follows is shown by docs/howto/testing-jobs.md, word for word.

const ordersJob = `
job: orders
parameters:
  input: {type: path}
flow:
- step: create
  tasklet: {sql: "create table orders (id bigint primary key, total bigint not null)"}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: order}}
    processor: discount
    writer: {table: orders}
    skip:  {limit: 5, errors: [invalid_item, constraint]}
    retry: {limit: 2, errors: [transient], backoff: {initial: 1ms}}
`

type Order struct {
	ID    int64 `json:"id"`
	Total int64 `json:"total"`
}

type Discount struct{}

func NewDiscount() Discount { return Discount{} }

func (Discount) Process(_ context.Context, o Order) (Order, error) {
	if o.Total == 0 {
		return o, batch.ErrFilter
	}
	if o.Total >= 1000 {
		o.Total -= o.Total / 10
	}
	return o, nil
}

var shop = batchtest.With(
	batch.Item[Order]("order"),
	batch.Processor[Order, Order]("discount", NewDiscount),
)

func TestOrdersAreLoadedWithTheirDiscount(t *testing.T) {
	e := batchtest.New(t, shop)
	input := e.File("orders.csv", "id,total\n1,500\n2,1000\n2,7\n3,0\nfour,4\n")

	run := e.Job(e.File("orders.yaml", ordersJob), "input="+input).Completed()

	e.HasRows("select id, total from orders order by id", "1|500", "2|900")
	counters := run.Step("load").Counters
	require.EqualValues(t, 1, counters.Filter)
	require.EqualValues(t, 1, counters.ReadSkip)
	require.EqualValues(t, 1, counters.WriteSkip)
	require.Equal(t, "unique", run.Skipped("load")[0].Class)
}

func TestADiscountIsATenth(t *testing.T) {
	sink := &batchtest.Sink[Order]{}
	batchtest.Step(batchtest.New(t), batchtest.Chunk{Size: 10}, batchtest.Components[Order, Order]{
		Reader:    batchtest.Slice(Order{1, 999}, Order{2, 1000}, Order{3, 0}),
		Processor: NewDiscount(),
		Writer:    sink,
	}).Completed()
	batchtest.Has(t, sink, Order{1, 999}, Order{2, 900})
}

func TestALostConnectionCostsOneMoreAttempt(t *testing.T) {
	down := batch.Retryable("write", errors.New("the connection is lost"))
	e := batchtest.New(t, shop, batchtest.WithFaults(
		batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{1}, After: true, Err: down},
	))
	input := e.File("orders.csv", "id,total\n1,500\n2,700\n")

	run := e.Job(e.File("orders.yaml", ordersJob), "input="+input).Completed()

	run.Counters("load", core.Counters{Read: 2, Write: 2, Commit: 1, Rollback: 1})
	e.HasRows("select count(*) from orders", "2")
}

func TestAnOrderThatPanicsFailsTheStepAndNoMore(t *testing.T) {
	bad := func(item any) bool { return item.(Order).ID == 3 }
	e := batchtest.New(t, shop, batchtest.WithFaults(
		batchtest.Fault{Step: "load", Phase: core.PhaseProcess, Match: bad, Times: 1, Panic: "order 3"},
	))
	input := e.File("orders.csv", "id,total\n1,500\n2,700\n3,900\n")
	file := e.File("orders.yaml", ordersJob)

	e.Job(file, "input="+input).Failed("order 3")
	e.HasRows("select id from orders order by id", "1", "2") // its chunk alone is undone

	e.Job(file, "input="+input).Completed() // goes on where it was
	e.HasRows("select id from orders order by id", "1", "2", "3")
}

func TestOrdersSurviveAKillAtEveryCommit(t *testing.T) {
	batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("orders.yaml") // or a file of yours: "../jobs/orders.yaml"
		c.Params = []string{"input=" + c.Path("orders.csv")}
		c.Options = append(c.Options,
			batch.Item[Order]("order"),
			batch.Processor[Order, Order]("discount", NewDiscount),
		)
		c.Setup = func(t *testing.T, e *batchtest.Env) {
			e.File("orders.yaml", ordersJob)
			e.File("orders.csv", "id,total\n1,500\n2,1000\n2,7\n3,0\n4,40\n")
		}
	})
}

// The end of what the page shows.

func TestOrdersAreLoadedOnPostgreSQL(t *testing.T) {
	e := batchtest.New(t, shop, batchtest.On(batchtest.Postgres(testdb.Postgres(t))(t)))
	input := e.File("orders.csv", "id,total\n1,500\n")
	e.Job(e.File("orders.yaml", ordersJob), "input="+input).Completed()
	e.HasRows("select id, total from orders", "1|500")
}

func TestTheHowToPageShowsCodeThatCompiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto", "testing-jobs.md"))
	require.NoError(t, err)
	code := ""
	for _, file := range []string{"howto_test.go", "example_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code += string(text)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(blocks), 4)
	for _, b := range blocks {
		require.Contains(t, unindented(code), unindented(b[1]))
	}
}

func unindented(code string) string {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "\n")
}
