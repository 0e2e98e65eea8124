// Package filestream holds the common parts of file readers and writers. Input is decompressed and
// decoded, restarts at a byte offset and refuses a changed file. Output belongs to one attempt,
// continues at the committed offset and is published by a rename (rules C15, C15b).
//
// It imports the standard library, golang.org/x/text, libraries of zstd and xz, and core with its
// folders only.
package filestream

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func pathError(path string, err error) error {
	var pe *fs.PathError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no such file: %s%w", absolute(path), silent{err})
	}
	return fmt.Errorf("%s: %w", absolute(path), cause)
}

type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }
