//go:build !race

package batchtest

// raced says that this binary has the race detector.
const raced = false
