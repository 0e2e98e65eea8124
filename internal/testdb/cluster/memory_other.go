//go:build !linux

package main

// memory is for systems that are known to have a folder in memory.
func memory() string { return "" }
