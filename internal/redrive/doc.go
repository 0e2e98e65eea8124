// Package redrive runs the skipped items of an execution through their chunk step again (rule C12). A
// [Plan] selects the items. The reader of its [Step] replaces the step's own, and the step marks each
// item that is not skipped again, in the transaction that commits it.
//
// An item is redriven once: a marked item is not read, and of two redrives that commit the same item
// one rolls back. A redrive that failed runs again from the start of the items that are left, so it
// needs no position of its input. An item that is skipped again stays left.
//
// It imports chunk and core, never step or job.
package redrive
