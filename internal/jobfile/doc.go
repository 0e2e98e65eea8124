// Package jobfile turns a YAML job file into a model.Job: it parses, checks against the registry of
// components, and compiles.
//
// [Load] reads and checks: all mistakes are reported together, every problem with file, line, column, an
// excerpt and a hint ([Problems]). [File.Compile] makes the job. [File.Changes] compares the file with the
// definition of an earlier execution.
//
// # The stages of a job file
//
//	source --yamlfile--> nodes --expand--> nodes without templates --language--> Job, Step, ...
//	       --check--> tree.File --compile--> model.Job
//
// Each stage is a package of this folder and imports only those before it. bind decodes the configs of
// components for check and compile, diff compares two tree.Files, and docs writes schema and reference from
// the structs of language.
//
// # Paths
//
// A path in the file is relative to the file. A parameter of type path is stored relative to the folder of
// the file if it lies inside, else absolute: that text is part of the instance's identity (rule L1a).
// `params.NAME` in every expression is the absolute path. In a path field (tag path), any other relative text
// is relative to the file.
//
// It imports core, tx, chunk, step, internal packages and its own folder, and no adaptor: components come
// through the registry.
package jobfile
