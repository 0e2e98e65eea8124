// Package check loads job files: it parses, decodes and checks, and reports all mistakes together.
//
// Names of elements are declared first, since any element may be named anywhere (declare.go).
//
// It imports core, tx, internal/job, internal/schedule, internal/expression, internal/yamlfile, and
// the packages of this folder up to bind.
package check
