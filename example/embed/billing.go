package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch"
)

// Order is the input of the service.
type Order struct {
	ID       int64
	Customer string
	Amount   int64
}

// billing is a job in Go: its reader and writer are shipped components, its processor is
// a function of the service.
func billing() *batch.Job {
	orders := batch.Use("query", batch.Config{
		"sql": "select id, customer, amount from orders where day = ${params.day}",
		"key": []string{"id"}, "item": "order",
	})
	invoice := batch.Use("map", batch.Config{
		"only": true, "id": "item.id", "customer": "item.customer", "day": "params.day", "total": "div(item.amount * 119, 100)",
	})
	return batch.NewJob("billing").Describe("Invoices for the orders of a day.").
		Parameter(batch.Parameter{Name: "day", Type: "date", Default: "${today()}", Doc: "The day of the orders."}).
		Step("table", batch.Use("sql", "create table if not exists invoices(id bigint primary key, customer text, day date, total bigint)")).
		Step("bill", batch.Chunk{
			Size:       500,
			Reader:     orders,
			Processors: []batch.Component{batch.Process(check), invoice},
			Writers:    []batch.Component{batch.Use("table", "invoices")},
			Retry:      &batch.Retry{Limit: 3},
			Skip:       &batch.Skip{Limit: 100},
		}, batch.With{Expect: "balanced"}).
		Step("tell", batch.TaskletOf(newMail), batch.With{When: "steps.bill.written > 0"})
}

// check leaves out orders without an amount. A negative one is an invalid item: it is
// skipped, up to the limit.
func check(_ context.Context, o Order) (Order, error) {
	switch {
	case o.Amount == 0:
		return o, batch.ErrFilter
	case o.Amount < 0:
		return o, batch.InvalidItem(errors.New("the amount is negative"))
	}
	return o, nil
}

// newMail has what it needs from the application.
func newMail(m *mailer) batch.TaskletFunc {
	return func(_ context.Context, c *batch.StepContribution) error {
		day, err := c.Params.Date("day")
		if err != nil {
			return err
		}
		return m.send(fmt.Sprintf("the invoices of %v are ready", day))
	}
}
