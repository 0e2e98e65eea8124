// Package testahead compares chunk steps that read ahead with the same ones that do not. The
// real engine runs each case, with failing components, lost answers, stops and ends of
// leases, twice until the job is complete. Status, error, position, counters, rows, files,
// stored skips, events and calls are the same (rule C19), and each item has one verdict.
//
// It imports the engine and the kits for tests, from tests only; nothing imports it.
package testahead
