// Package bind decodes the configs of components with the values of ${...}. It does so three times: at load,
// where everything is checked and late-bound values stay zero; before an execution exists, with the launch's
// parameters; and at the start of a step, with all values.
//
// It imports core, tx, internal/confine, internal/expression, internal/sqlscript, internal/yamlfile, and
// language, template, itemtype and tree of this folder.
package bind
