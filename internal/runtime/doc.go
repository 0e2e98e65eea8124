// Package runtime runs work that other processes have planned: a [Worker] takes
// partitions of steps and runs them with leases of its own, and resumes executions that
// waited for theirs.
//
// It may import core, tx, guard and inbox. The functions of its [Config] rebuild a job and run a
// step, so that it knows no job file and no adaptor.
package runtime
