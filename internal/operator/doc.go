// Package operator runs and operates jobs for all clients: the command,
// applications and the API. Requests and results marshal to JSON; a [Refusal]
// holds the possible actions, which the client words. It imports core, tx,
// chunk, job, internal/jobfile and helpers of internal, and neither a command
// line nor fx.
package operator
