// Package rules tests the rules of the source tree: imports, the order of the stages of a job file,
// package comments, the length of files, hidden state, links and numbers of the documents.
//
// It imports the packages that its tests describe, from its tests only; nothing imports it.
package rules
