// Package task is the vocabulary of asynchronous work: tasks and groups of tasks, what a
// handler is given and answers, the budget, the decision what comes next, and the
// transition table of a task's state; and of jobs that are registered with a server. It is pure: it does no I/O and reads no clock.
//
// It imports the standard library, core and core/exception only.
package task
