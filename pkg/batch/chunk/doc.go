// Package chunk is the chunk step: it reads up to N items, processes each, and writes them with counters and
// position in one transaction (rules C1, C4, C5).
//
// Items stay in one typed slice per chunk in [item.Items]: nothing is boxed, and recover is set up once per
// phase, not per item.
//
// It imports core and tx, never step or job.
package chunk
