// Package jsontext reads JSON more strictly than encoding/json, and without making values of it: it
// finds the end of a value, refuses text that encoding/json would silently correct (invalid UTF-8,
// lone surrogates, duplicate keys), and finds the values at paths such as properties.mag or
// geometry.coordinates[0].
//
// It imports the standard library only.
package jsontext
