// Package conformance runs scenarios, written in YAML, against the real engine.
//
// It imports the engine, its adaptors and the kits for tests, from its tests only; nothing imports
// it.
package conformance
