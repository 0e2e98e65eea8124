// Package boottime reads a clock that only moves forward and, on Linux and macOS, runs while the machine is
// suspended, like the clocks of other machines (rule L9).
//
// It imports golang.org/x/sys and the standard library.
package boottime
