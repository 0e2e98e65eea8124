// Package sampling samples the counters of steps while their process runs them, and stores the samples with its
// heartbeats.
//
// It imports core, model, ports, internal/series and internal/panics.
package sampling
