// Package batch is what an application imports: it registers its own readers,
// processors, writers and tasklets. cli.Main, in the package below, is the surfin
// command with those components built in; an [App] runs and operates jobs inside of a
// Go program, which then compiles no command line.
//
//	func main() {
//		cli.Main(
//			batch.Item[Order]("order"),                         // csv, jsonl, table, ... for Order
//			batch.Processor[Order, Invoice]("price", NewPrice), // func(PriceConfig, *Rates) (*Price, error)
//			fx.Provide(NewRates),                               // dependencies by fx, as usual
//		)
//	}
//
// [Listener] registers listeners of jobs, steps, chunks and skips; [Decider] and
// [Partitioner] what decides in a flow and what splits a step's work; [Matcher] a
// class of errors for the job file's retry and skip.
//
// # Map
//
//   - core: the vocabulary. Item interfaces, records, status table.
//     core/registry: components and their configuration.
//     core/exception: what an error means, and the classes that job files name.
//   - tx: transactions and their propagation.
//   - chunk: the chunk step, read, process, write, checkpoint.
//   - step: the step executor; tasklet steps, partitioned steps, child jobs.
//   - job: launcher, flow walker, leases.
//   - operator: run, restart, stop and all that is done with jobs, and what is shown of
//     them; the command and an App are its clients.
//   - runtime: workers, which run the parts that other processes have planned.
//   - repository: the history in a database, and every guarded transition.
//   - internal/jobfile: YAML to a job. adaptor/item, adaptor/tasklet,
//     adaptor/partition: what is shipped. adaptor/observe: metrics, traces and
//     structured events. adaptor/database/gorm: databases. internal/cli: the commands.
//   - cli: Main. settings: surfin.yaml and the environment.
//
// A new reader or writer is a folder in adaptor/item with a Components function, and
// one entry in this package's stock list (stock.go).
//
// It imports the engine, the service and the light adaptors. What is heavy, and a command
// line, must not be reachable from it.
package batch
