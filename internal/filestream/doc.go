// Package filestream holds the common parts of file readers and writers. Input is decompressed and
// decoded, restarts at a byte offset and refuses a changed file. Output belongs to one attempt,
// continues at the committed offset and is published by a rename (rules C15, C15b).
//
// It imports the standard library, golang.org/x/text, libraries of zstd and xz, core with its
// folders, and internal/place.
package filestream
