//go:build race

package batchtest_test

// every is at which commits the jobs of these tests are killed: a process with the
// race detector takes ten times as long, and the kills find nothing that they do
// not find without it.
const every = 7
