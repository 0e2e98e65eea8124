// Package registry describes the components of job files: their names, their configuration, and how to
// make an instance.
//
// It imports core, core/exception and tx.
package registry
