// Package runtime runs work that other processes have planned: a [Worker] takes
// partitions of steps and runs them with leases of its own, and resumes executions that
// waited for theirs.
//
// It imports core, tx and job.
package runtime
