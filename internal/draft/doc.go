// Package draft drafts jobs from data: [Infer] determines the fields and types of a sample of a
// csv, json or jsonl file, [InferTable] those of a table. Files are read with the readers of
// jobs, so a run sees the same data.
//
// It imports core with its folders, tx, the reader csv, helpers of internal and the standard
// library.
package draft
