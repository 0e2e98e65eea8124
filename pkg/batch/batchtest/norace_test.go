//go:build !race

package batchtest_test

// every is at which commits the jobs of these tests are killed: at each, or with
// -short at every third.
const every = 0
