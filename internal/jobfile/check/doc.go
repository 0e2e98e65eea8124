// Package check loads job files: it parses, decodes and checks, and reports all mistakes of a file together.
//
// The flow is a tree of elements. Their names are declared first, since any element may be named anywhere
// (declare.go). Then each element is checked (elements.go, steps.go), then the edges between them and the graph
// (flow.go), and last the steps that may have run at each `steps.NAME`.
//
// It imports core, tx, internal/job, internal/schedule, internal/expression, internal/yamlfile, and the
// packages of this folder up to bind.
package check
