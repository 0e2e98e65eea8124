// Package testmodel compares the chunk engine with a model of its rules.
//
// A case is a source of items with faults, filters, limits and kill points. The real engine runs it on a real
// database, launch after launch, until the job is complete; the model, a plain interpreter over lists written
// from the rules (C1 to C12, C15a, C17) and not from the engine, predicts the visible results: the calls of
// the components in their order, the rows, the status, the counters, the stored skips and what a restart
// reads again.
//
// It imports the engine and the kits for tests, from tests only; nothing imports it.
package testmodel
