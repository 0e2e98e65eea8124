// Package step runs steps: [SimpleStepExecutor] records their start and end and opens the transaction
// of their propagation, and [TaskletStep] is the step of one tasklet.
//
// [PartitionStep] runs the parts of a step, here or on workers; [JobStep] runs a child job.
//
// It imports core, core/exception and tx, never chunk or job.
package step
