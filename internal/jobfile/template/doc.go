// Package template has texts with ${...} in them: how they are cut, which names their expressions may use, and the
// types and texts of their values.
//
// It imports core, internal/calendar, internal/expression and internal/yamlfile.
package template
