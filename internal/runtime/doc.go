// Package runtime runs work that other processes have planned: a [Worker] runs
// partitions of steps under its own leases, and resumes parked executions.
//
// It may import core, tx, guard and inbox; the functions of its [Config] rebuild
// jobs.
package runtime
