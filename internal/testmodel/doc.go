// Package testmodel compares the chunk engine with a model of its rules. A case is a source of
// items with faults, filters, limits and kill points. The real engine runs it until the job is
// complete; the model, an interpreter written from the rules (C1 to C12, C15a, C17) and not from
// the engine, predicts calls, rows, status, counters and stored skips.
//
// It imports the engine and the kits for tests, from tests only; nothing imports it.
package testmodel
