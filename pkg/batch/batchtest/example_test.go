package batchtest_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func ExampleJob() {
	var t *testing.T // of your test
	run := batchtest.Job(t, "../jobs/orders.yaml", "input=testdata/orders.csv", "year=2026")
	run.Completed().Counters("load", core.Counters{Read: 3, Write: 3, Commit: 1})
}

func ExampleOn() {
	var t *testing.T // of your test
	server := os.Getenv("TEST_DATABASE_URL")
	e := batchtest.New(t, batchtest.On(batchtest.Postgres(server)(t)))
	e.Job("../jobs/orders.yaml").Completed()
}

func ExampleStep() {
	var t *testing.T // of your test
	sink := &batchtest.Sink[Order]{}
	batchtest.Step(batchtest.New(t), batchtest.Chunk{Size: 10}, batchtest.Components[Order, Order]{
		Reader: batchtest.Slice(Order{1, 999}, Order{2, 1000}), Processor: NewDiscount(), Writer: sink,
	}).Completed()
	batchtest.Has(t, sink, Order{1, 999}, Order{2, 900})
}

func ExampleInject() {
	ctx := context.Background()
	settings, err := batch.LoadSettings()
	if err != nil {
		panic(err)
	}
	app, err := batch.New(ctx, settings, batchtest.Inject(
		batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{2}, Err: exception.Retryable("write", errors.New("down"))},
	))
	if err != nil {
		panic(err)
	}
	defer app.Close(ctx) //nolint:errcheck // an example
	_, _ = app.Run(ctx, batch.RunRequest{File: "../jobs/orders.yaml"})
}

func ExampleCrashEverywhere() {
	var t *testing.T // of your test
	batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
		c.Job = "../jobs/orders.yaml"
		c.Params = []string{"input=testdata/orders.csv"}
		c.Database = batchtest.Postgres(os.Getenv("TEST_DATABASE_URL")) // without it SQLite is used
		c.Again = 1                                                     // the restarts are killed too
	})
}
