// Package panics turns a panic of an author's code into an error.
//
// It imports the standard library only.
package panics
