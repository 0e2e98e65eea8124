// Package redrive runs the skipped items of an execution through their chunk step
// again (rule C12): a [Plan] says which, its Reader stands in for the step's, and
// its Step marks what has a verdict other than another skip, in the transaction
// that commits it.
//
// An item is redriven once: what is marked is not read, and of two redrives that
// commit the same item one rolls back. A redrive that failed is run again from the
// start of what is left, so it needs no position of its own input, and an item that
// is skipped again stays to be redriven.
package redrive
