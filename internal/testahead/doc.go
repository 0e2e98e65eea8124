// Package testahead compares chunk steps that read ahead with the same ones that do not.
//
// A case is a step with everything that may go wrong in it: errors and panics of
// components, listeners and policy, answers of the database that are lost, stops, the end of
// the context or of the lease. The real engine runs it twice on a real database, launch
// after launch, until the job is complete: with read-ahead and without. Status, error,
// position, counters, rows, files, stored skips, events and the calls in their order are the
// same (rule C19), and in the end each item has one verdict.
//
// It imports the engine and the kits for tests, from tests only; nothing imports it.
package testahead
