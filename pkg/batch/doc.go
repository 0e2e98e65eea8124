// Package batch runs batch jobs inside a Go program, and registers the readers, processors, writers and tasklets of an
// application. A job reads items in chunks, each in a transaction with its checkpoint: whoever dies, a restart
// continues after the last commit.
//
// # A job in Go
//
//	job := batch.NewJob("billing").
//		Parameter(batch.Parameter{Name: "day", Type: "date"}).
//		Step("bill", batch.Chunk{
//			Reader:     batch.ReaderOf[Order](NewOrders),                      // func(deps...) *Orders
//			Processors: []batch.Component{batch.Process(price)},               // func(ctx, Order) (Invoice, error)
//			Writers:    []batch.Component{batch.Use("table", "invoices")},     // shipped: docs/reference
//			Skip:       &batch.Skip{Limit: 100},
//		}).
//		Step("tell", batch.Do(tell)) // func(ctx, *batch.StepContribution) error: c.Params.Date("day")
//
//	settings, err := batch.LoadSettings() // surfin.yaml, DATABASE_URL
//	app, err := batch.New(ctx, settings, batch.Jobs(job), fx.Provide(NewMailer))
//	defer app.Close(ctx)
//	execution, err := app.Run(ctx, batch.RunRequest{Name: "billing", Params: map[string]string{"day": "2026-11-20"}})
//
// Dependencies of constructors come from fx. [Module] adds the [App] to an fx application of your own, which lends its
// pool by [DatabaseFrom]. [CheckJobs] checks jobs in a unit test; package batchtest runs them on a real database, with
// faults and kills:
//
//	run := batchtest.New(t, batchtest.With(batch.Jobs(job))).Named("billing", "day=2026-11-20").Completed()
//
// # Job files
//
// Components registered by name are used in job files, such as `processor: {price: {discount: 10}}`. Package cli has
// the surfin command with these components built in:
//
//	cli.Main(
//		batch.Item[Order]("order"),                         // csv, jsonl, table, ... for Order
//		batch.Processor[Order, Invoice]("price", NewPrice), // func(PriceConfig, *Rates) (*Price, error)
//		fx.Provide(NewRates),
//	)
//
// Errors say what may be done: [ErrFilter], [InvalidItem], [Retryable], [Skippable], [Fatal], and [Matchers] for
// classes of your own. Below this package, core has the records, listeners and events, core/item the interfaces of
// components, core/task the tasks, tx the transactions.
//
// It imports the engine, the service and the light adaptors. Heavy libraries, and a command line, must not be reachable
// from it.
package batch
