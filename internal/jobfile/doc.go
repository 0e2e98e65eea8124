// Package jobfile turns a YAML job file into a model.Job.
//
// [Load] reads and checks, and reports all mistakes together ([Problems]). [File.Compile] makes
// the job. [File.Changes] compares the file with an earlier definition.
//
// # The stages of a job file
//
//	source --yamlfile--> nodes --expand--> nodes without templates --language--> Job, Step, ...
//	       --check--> tree.File --compile--> model.Job
//
// Each stage is a package of this folder and imports only those before it.
//
// # Paths
//
// A path in the file is relative to the file. A parameter of type path is stored relative to the
// folder of the file if it lies inside, else absolute: that text is part of the instance's
// identity (rule L1a). In expressions it is absolute.
//
// It imports core, tx, chunk, step, internal packages and its own folder, and no adaptor:
// components come through the registry.
package jobfile
