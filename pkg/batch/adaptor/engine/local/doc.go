// Package local is the engine that needs only the tables of the work, on every database: a worker polls
// them, and at once when its own process has committed work. The guards of the rows decide which process
// gets it.
//
// It has no tables itself, so nothing is lost with a process.
//
// It imports tx and runtime/engine.
package local
