//go:build race

package batchtest

// raced means that this binary has the race detector.
const raced = true
