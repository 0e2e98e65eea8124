// Package encode writes Go values as the text of a job file. A job made in Go becomes such a text, which is
// checked, compiled and kept in the history as a file is (rule F4).
//
// It imports internal/yamlfile, and core with its folders.
package encode
