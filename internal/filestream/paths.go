package filestream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/confine"
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

func (silent) Error() string { return "" }

func (s silent) Unwrap() error { return s.error }

// openRegular refuses other files before opening them: opening a pipe waits for its writer, even
// after the context has ended.
func openRegular(files *confine.Files, path string) (*os.File, error) {
	info, err := files.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	return files.Open(path)
}

func regular(info fs.FileInfo) error {
	what := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errors.New("it is a directory")
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	default:
		what = "a device"
	}
	return fmt.Errorf("it is %s, which cannot be read again after a failure: write it to a file first", what)
}
