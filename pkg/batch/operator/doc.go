// Package operator is the one place where jobs are run and operated: [Service] has the
// acts (run, start, next, restart, stop, abandon, recover, purge, redrive) and the
// views of the history. The command, an application and whatever serves an API are
// clients of it, so that "run" and "restart" mean the same from everywhere.
//
// Requests and results are plain data and marshal to JSON. A refusal is a [Refusal],
// which holds the ways out as data; the client words them.
//
// It imports core, tx, chunk, job, internal/jobfile and helpers of internal, and neither a
// command line nor fx.
package operator
