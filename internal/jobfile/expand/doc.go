// Package expand reads the files that a job file includes and replaces the uses of templates by their elements,
// before the file is decoded. It works on the nodes of the documents: a node of a template keeps its position
// in the file and knows the use that added it to the job. Names of elements come from the template with its
// arguments filled in and do not depend on the order of the uses, so that a restart finds the steps of a file
// to which another use was added.
//
// It imports core, internal/expression, internal/yamlfile, and source, language and template of this folder.
package expand
