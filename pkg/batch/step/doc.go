// Package step runs steps: [SimpleStepExecutor] records their start and end and
// opens the transaction that their propagation asks for, and [TaskletStep] is the
// step whose work is one tasklet.
//
// It imports core and tx, never chunk or job.
package step
