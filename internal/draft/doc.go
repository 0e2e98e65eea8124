// Package draft drafts jobs from data: [Infer] says which fields and types a sample of a csv,
// json or jsonl file has, and how sure that is; [InferTable] says what the catalogue of a database
// has of a table. [Shape.Item], [Shape.Start] and [Shape.Copy] make the text of types, jobs,
// migrations and tests of it. The commands infer, init and copy are clients of it.
//
// Files are read with the readers that a job has for them: what a draft says is what a run sees.
//
// It imports core with its folders, tx, the reader csv, helpers of internal and the standard library.
package draft
