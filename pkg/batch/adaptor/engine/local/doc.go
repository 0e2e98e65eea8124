// Package local is the engine that needs nothing beside the tables of the work, on every
// database: a worker looks at them now and then, and at once when its own process has
// committed new work. Several processes share the work by looking; the guards of the rows
// decide who gets it.
//
// It has no table of its own, so that nothing is lost with a process: what waits in the
// tables is found there.
//
// It imports tx and runtime/engine.
package local
