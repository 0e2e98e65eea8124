// Package task is the vocabulary of tasks: specs, groups, handlers, outcomes, deciders, budgets and states.
// It does no I/O and reads no clock.
//
// It imports the standard library, core and internal/workslot only.
package task
