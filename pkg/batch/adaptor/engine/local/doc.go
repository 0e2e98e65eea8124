// Package local is the engine that needs only the tables of the work, on every database: a worker polls them
// now and then, and at once when its own process has committed new work. Several processes share the work by
// polling; the guards of the rows decide which one gets it.
//
// It has no tables itself, so that nothing is lost with a process: waiting work is found in the work's
// tables.
//
// It imports tx and runtime/engine.
package local
