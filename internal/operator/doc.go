// Package operator runs and operates jobs, for all clients: [Service] has the acts (run, start,
// next, restart, stop, abandon, recover, purge, redrive) and the views of the history. The command,
// an application and any server of an API call it, so that "run" and "restart" mean the same
// everywhere.
//
// The service is composed of parts with one task each (service.go). Every part declares its own port
// to the repository. Below them are judge (what may be done with an execution), jobs (find and
// compile), admission (refuse a launch), viewer and workload (views of records).
//
// Requests and results are plain data and marshal to JSON. A refusal is a [Refusal], which holds
// the possible actions as data; the client words them.
//
// It imports core, tx, chunk, job, internal/jobfile and helpers of internal, and neither a command
// line nor fx.
package operator
