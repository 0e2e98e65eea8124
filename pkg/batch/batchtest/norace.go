//go:build !race

package batchtest

const raced = false
