package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
)

// ErrShrank reports that a file has become shorter while it was read.
var ErrShrank = errors.New("the file became shorter")

// Disk is the file system, as far as the execution of ctx may use it.
func Disk(ctx context.Context) Place { return disk{confine.From(ctx)} }

type disk struct{ files *confine.Files }

func (d disk) Stat(_ context.Context, path string) (Info, error) {
	info, err := d.files.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return DiskInfo(path, info), nil
}

// DiskInfo describes a file of the disk.
func DiskInfo(path string, info fs.FileInfo) Info {
	return Info{Path: path, Size: info.Size(), Modified: info.ModTime().UTC().Truncate(time.Microsecond)}
}

// Open refuses anything but a regular file before opening it: opening a pipe waits for its writer, even after the
// context has ended.
func (d disk) Open(_ context.Context, path string) (File, error) {
	info, err := d.files.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	file, err := d.files.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &diskFile{file, DiskInfo(path, info)}, nil
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

func (d disk) Find(_ context.Context, pattern string) ([]Info, error) {
	// A glob silently leaves out folders that it may not read.
	if err := d.unreadable(folderOf(pattern)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	var list []Info
	for _, path := range found {
		info, err := d.files.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		list = append(list, DiskInfo(path, info))
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(list, func(a, b Info) bool { return a.Path == b.Path }), nil
}

func (d disk) unreadable(folder string) error {
	f, err := d.files.Open(folder)
	if err != nil {
		return err
	}
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func folderOf(pattern string) string {
	folder := pattern
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		folder = pattern[:i]
	}
	return filepath.Dir(folder + "x")
}

type diskFile struct {
	*os.File
	opened Info
}

func (f *diskFile) Opened() Info { return f.opened }

func (f *diskFile) Now() (Info, error) {
	info, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return DiskInfo(f.opened.Path, info), nil
}

func (f *diskFile) From(offset int64) io.ReadCloser {
	return &sized{file: f, at: offset, left: f.opened.Size - offset}
}

// sized reads a file up to its size when it was opened: later text may be half of a record.
type sized struct {
	file     *diskFile
	at, left int64
}

// Read fails if the file has become shorter: the missing part was not read.
func (s *sized) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	n, err := s.file.ReadAt(p[:min(int64(len(p)), s.left)], s.at)
	s.at, s.left = s.at+int64(n), s.left-int64(n)
	switch {
	case !errors.Is(err, io.EOF):
	case s.left > 0:
		err = ErrShrank
	default:
		err = nil
	}
	return n, err
}

func (s *sized) Close() error { return nil }
