package filestream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/confine"
)

// MakeFolder makes a missing folder, so that it survives a crash.
func MakeFolder(ctx context.Context, dir string) error {
	files := confine.From(ctx)
	return (&Output{disk: system{files}, files: files}).makeFolder(dir)
}

// The new folder survives a crash.
func (o *Output) makeFolder(dir string) error {
	if _, err := o.files.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil // other mistakes are reported when it is used
	}
	parent := filepath.Dir(dir)
	if err := o.makeFolder(parent); err != nil {
		return err
	}
	if err := o.files.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return pathError(dir, err)
	}
	return o.disk.SyncDir(parent)
}

func (o *Output) checkTarget(path string) error {
	info, err := o.files.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return pathError(path, err)
	case info.IsDir():
		return fmt.Errorf("%s: it is a directory", path)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: it is a symbolic link; only regular files are replaced, so name the file itself", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is not a regular file (%v), and only regular files are replaced", path, info.Mode().Type())
	}
	return nil
}
