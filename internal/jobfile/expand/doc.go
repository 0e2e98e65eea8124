// Package expand reads included files and replaces uses of templates by their elements, before the
// file is decoded. Nodes keep their positions. Names of elements do not depend on the order of the
// uses, so that a restart finds its steps after another use was added.
//
// It imports core, internal/expression, internal/yamlfile, and source, language and template of
// this folder.
package expand
