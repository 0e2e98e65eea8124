// Package batch is the package that an application imports to register its readers, processors, writers
// and tasklets. cli.Main, in the package below, is the surfin command with those components built in; an
// [App] runs and operates jobs inside a Go program, which then compiles no command line.
//
//	func main() {
//		cli.Main(
//			batch.Item[Order]("order"),                         // csv, jsonl, table, ... for Order
//			batch.Processor[Order, Invoice]("price", NewPrice), // func(PriceConfig, *Rates) (*Price, error)
//			fx.Provide(NewRates),                               // dependencies by fx, as usual
//		)
//	}
//
// [Listener] registers listeners of jobs, steps, chunks and skips; [Decider] and [Partitioner] the
// components that decide in a flow and split a step's work; [Matcher] a class of errors for the job
// file's retry and skip.
//
// # Map
//
//   - core: the vocabulary. Item interfaces, records, status table.
//     core/registry: components and their configuration.
//     core/exception: the classification of errors, and the classes that job files name.
//   - tx: transactions and their propagation.
//   - chunk: the chunk step, read, process, write, checkpoint.
//   - step: the step executor; tasklet steps, partitioned steps, child jobs.
//   - job: launcher, flow walker, leases.
//   - operator: run, restart, stop and all other operations on jobs, and their views;
//     the command and an App are its clients.
//   - runtime: workers, which run the parts that other processes have planned.
//   - repository: the history in a database, and every guarded transition.
//   - internal/jobfile: YAML to a job. adaptor/item, adaptor/tasklet,
//     adaptor/partition: the shipped components. adaptor/observe: metrics, traces and
//     structured events. adaptor/database/gorm: databases. internal/cli: the commands.
//   - cli: Main. settings: surfin.yaml and the environment.
//
// A new reader or writer is a folder in adaptor/item with a Components function, and one entry in this
// package's stock list (stock.go).
//
// It imports the engine, the service and the light adaptors. Heavy libraries, and a command line, must
// not be reachable from it.
package batch
