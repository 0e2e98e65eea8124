// Package diff compares two definitions for an instance that began with the first: which changes a
// restart can take, and which contradict committed work (rule F4).
//
// It imports core, tx, internal/secret, internal/yamlfile, and the packages of this folder up to
// check.
package diff
