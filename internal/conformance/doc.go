// Package conformance runs scenarios against the real engine: facts about inputs, faults and outcomes,
// written in YAML, independent of any API. Its tests are the runner; README.md describes the format and how
// to run it.
//
// It imports the engine, its adaptors and the kits for tests, from its tests only; nothing imports it.
package conformance
