// Package model is a compiled job as the engine runs it.
//
// It imports core with its folders only.
package model
