// Package jobfile turns a YAML job file into a core.Job: it parses, checks against the registry of
// components, and compiles.
//
// [Load] reads and checks: all mistakes are reported together, every problem with file, line, column, an
// excerpt and a hint ([Problems]). [File.Compile] makes the job. Schema, reference pages and descriptions
// ([Schema], [Reference], [Describe]) come from the same structs and tags that the loader decodes into
// (model.go, and the Config types of the components).
//
// # The stages of a job file
//
//	YAML --internal/strict--> nodes --model.go--> Job, Step, ... --check*.go--> File --compile.go--> core.Job
//
// A component's config is decoded three times. At load everything is checked; ${late-bound} values stay zero,
// but their static types must fit. Before an execution exists (core.Job.Bind) it is decoded with the launch's
// parameters: a value that does not fit refuses the launch. At the start of its step it is decoded with all
// values, into a new struct for New.
//
// The flow is a tree of elements (element.go). Their names are collected first, since any element may be
// named anywhere. Edges and the checks of the graph come last (flow.go); then the steps that may have run at
// each `steps.NAME` (condition.go). [Compare] finds what a changed file means for a restart (changes.go).
//
// # Paths
//
// A path in the file is relative to the file. A parameter of type path is stored relative to the folder of
// the file if it lies inside, else absolute: that text is part of the instance's identity (rule L1a).
// `params.NAME` in every expression is the absolute path. In a path field (tag path), any other relative text
// is relative to the file.
//
// It imports core, tx, chunk, step, job, internal and its own internal/strict, and no other adaptor:
// components come through the registry.
package jobfile
