// Package trait has the interfaces by which configurations of the shipped components describe them to the
// language: a writer that empties its target, a component that takes a connection more.
//
// It imports the standard library only.
package trait
