package filestream

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/surfin-batch/surfin/internal/confine"
)

// disk holds the operations of the file system in which the order matters.
type disk interface {
	Sync(f *os.File) error
	SyncDir(dir string) error
	Rename(from, to string) error
	Remove(name string) error
}

type system struct{ files *confine.Files }

func (system) Sync(f *os.File) error { return f.Sync() }

func (s system) Rename(from, to string) error { return s.files.Rename(from, to) }

func (s system) Remove(name string) error { return s.files.Remove(name) }

func (s system) SyncDir(dir string) error { return syncDir(s.files, dir) }

// SyncDir makes new names in dir survive a crash. Windows has no such call.
func SyncDir(ctx context.Context, dir string) error { return syncDir(confine.From(ctx), dir) }

func syncDir(files *confine.Files, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := files.Open(dir)
	if err != nil {
		return pathError(dir, err)
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return pathError(dir, err)
	}
	return nil
}

var errLocked = errors.New("it is locked")
