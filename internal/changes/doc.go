// Package changes notifies listeners that something in the history has changed:
// an execution, a step, its counters, a task, a schedule, a worker. One [Looker]
// queries the database once a second while anyone listens, and not otherwise.
// It imports ports, core and the standard library.
package changes
