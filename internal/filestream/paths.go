package filestream

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/surfin-batch/surfin/internal/urlpath"
)

func absolute(path string) string {
	if abs, err := urlpath.Abs(path); err == nil {
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

func (silent) Error() string { return "" }

func (s silent) Unwrap() error { return s.error }
