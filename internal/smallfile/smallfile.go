// Package smallfile reads hand-written files within bounds.
//
// It imports the standard library only.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the maximum size of a job file or a settings file.
const MaxBytes = 1 << 20

// ErrTooLarge reports a file that does not end within its bound.
var ErrTooLarge = errors.New("the file is too large")

// Read reads the file, perhaps a pipe; more than MaxBytes is ErrTooLarge.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f, path)
}

// ReadFS is Read of a file in fsys.
func ReadFS(fsys fs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f, path)
}

func read(f io.ReadCloser, path string) (_ []byte, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if err := Check(text, path); err != nil {
		return nil, err
	}
	return text, nil
}

// Check refuses a text that is too large for a file; path names it.
func Check(text []byte, path string) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%w: %s has more than the allowed %d bytes", ErrTooLarge, path, MaxBytes)
	}
	return nil
}

// Nested finds where a YAML text seems to nest deeper than maxDepth; it may report too much, but
// misses none. Line and column count from 1.
func Nested(text string, maxDepth int) (line, column int, deeper bool) {
	open := 0
	line = 1
	for row := range strings.SplitSeq(text, "\n") {
		dashes, leading := 0, true
		for i := 0; i < len(row); i++ {
			switch c := row[i]; {
			case c == '[' || c == '{':
				open++
			case c == ']' || c == '}':
				open = max(open-1, 0)
			case leading && (c == '-' || c == '?') && i+1 < len(row) && row[i+1] == ' ':
				dashes++
			}
			leading = leading && strings.IndexByte(" -?", row[i]) >= 0
			if open+dashes > maxDepth {
				return line, utf8.RuneCountInString(row[:i]) + 1, true
			}
		}
		line++
	}
	return 0, 0, false
}
