// Package task is the vocabulary of tasks: groups, handlers, budget, decisions, states; and of registered
// jobs. It does no I/O and reads no clock.
//
// It imports the standard library, core and core/exception only.
package task
