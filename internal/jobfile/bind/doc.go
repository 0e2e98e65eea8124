// Package bind decodes the configs of components with the values of ${...}.
//
// It imports core, tx, internal/confine, internal/expression, internal/sqlscript,
// internal/yamlfile, and language, template, itemtype and tree of this folder.
package bind
