// Package series has the counters of steps over time: samples, which stay few however long a step runs, their
// stored form, and their sums.
//
// It imports core.
package series
