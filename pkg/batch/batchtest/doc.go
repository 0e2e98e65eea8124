// Package batchtest tests jobs on the real engine and a real database.
//
//   - [New], [Job] and [Step] run a job file, one of its steps, or components given
//     as Go values, in the test's own process; [Run] has assertions about the
//     result.
//   - [Fault] makes a component of a step fail at a phase, an item, a call, a given
//     number of times. The component itself stays in place and does the rest of the work.
//   - [CrashEverywhere] kills a job, as a process and with SIGKILL, before and after
//     every COMMIT it makes, starts it again, and compares the result with that
//     of an undisturbed run: rows, files, counters, skipped items.
//
// By default everything runs on SQLite files of the test's own; [On] names another database.
//
// It imports package batch, the engine, adaptors and fx. Only tests import it.
package batchtest
