// Package chunk is the chunk step: a pipeline that reads up to N items, processes each, and writes them
// together with the step's counters and restart position in one transaction (rules C1, C4, C5).
//
// It moves forward only. Items stay in one typed slice per chunk in [item.Items]; nothing is boxed, and
// recover is set up once per phase of a chunk, not per item.
//
// It imports core and tx, never step or job.
package chunk
