// Package tree is a checked job file: its elements as a tree, its steps with their components, and
// facts about them that several packages need, such as the database of a step. Package check makes
// it; nothing changes it afterwards.
//
// It imports core, tx, internal/job, internal/schedule, internal/expression, internal/yamlfile, and
// source, language, template and itemtype of this folder.
package tree
