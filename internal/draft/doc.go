// Package draft drafts jobs from data: [Infer] determines the fields and types of a sample of a
// csv, json or jsonl file, and their certainty; [InferTable] reads the fields of a table from the
// database's catalog. [Shape.Item], [Shape.Start] and [Shape.Copy] turn them into the text of
// types, jobs, migrations and tests. The commands infer, init and copy are clients of it.
//
// Files are read with the readers of jobs: a run sees the same data as the draft.
//
// It imports core with its folders, tx, the reader csv, helpers of internal and the standard
// library.
package draft
