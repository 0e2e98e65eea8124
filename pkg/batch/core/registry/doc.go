// Package registry describes the components that job files use: what they are
// called, which configuration they take, and how an instance is made.
//
// It imports core, core/exception and tx.
package registry
