// Package runtime runs work that other processes have planned: a [Worker] takes partitions of steps
// and runs them under its own leases, and resumes executions that waited for theirs.
//
// It may import core, tx, guard and inbox. The functions of its [Config] rebuild a job and run a
// step, so it depends on no job file and no adaptor.
package runtime
