// Package task is the vocabulary of asynchronous work: tasks and groups of tasks, the inputs and
// outputs of a handler, the budget, the decision after a failed attempt, and the transition table of a
// task's state; and of jobs that are registered with a server. It is pure: it does no I/O and reads no
// clock.
//
// It imports the standard library, core and core/exception only.
package task
