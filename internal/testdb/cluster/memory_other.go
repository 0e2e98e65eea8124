//go:build !linux

package main

// memory returns "": no other system is known to have a folder in memory.
func memory() string { return "" }
