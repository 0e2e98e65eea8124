// Package compile makes a model.Job of a checked job file.
//
// It imports core, tx, chunk, step, internal/job, internal/redrive, internal/confine, internal/filestream, and
// the packages of this folder up to diff, which judges a restart with a changed file.
package compile
