// Package redrive runs the skipped items of an execution through their chunk step again (rule C12).
// A [Plan] selects the items, the reader of its [Step] reads them, and the step marks each that is
// not skipped again, in the transaction that commits it.
//
// An item is redriven once: of two redrives that commit it one rolls back. A failed redrive runs
// again over the items that are left, and needs no position.
//
// It imports chunk and core, never step or job.
package redrive
