// Package registry describes job files' components: names, configuration, instances.
//
// It imports core, core/exception and tx.
package registry
