// Package place is the port of the places that have files: the disk, and others.
//
// It imports confine, nearest, urlpath and yamlfile.
package place

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// Info describes a file as it is, or was.
type Info struct {
	// Path is its whole name: a file has one.
	Path     string
	Size     int64
	Modified time.Time
	// Version names this content, if the place gives each a name. Otherwise a file is recognized by size, time and
	// its first bytes.
	Version string
}

// Mark is a short form by which a listed file is recognized.
func (i Info) Mark() string {
	text := fmt.Sprintf("%d %d", i.Size, i.Modified.UnixMicro())
	if i.Version != "" {
		text += " " + i.Version
	}
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))
}

// Place has files. Its errors name no path; fs.ErrNotExist is in their chain if there is no such file.
type Place interface {
	// Stat describes a file, or a folder on the disk.
	Stat(ctx context.Context, path string) (Info, error)
	// Open opens a file. It is read while ctx lasts.
	Open(ctx context.Context, path string) (File, error)
	// Find returns the files that match a pattern, without folders, sorted by path. A folder that may not be read
	// is an error, a missing one is not.
	Find(ctx context.Context, pattern string) ([]Info, error)
}

// File is a file that is read, with the content that it had when it was opened.
type File interface {
	// ReadAt is for a few bytes anywhere.
	io.ReaderAt
	// From reads the bytes from an offset up to the size when it was opened. If they have gone since, it fails with
	// ErrShrank, and does not end.
	From(offset int64) io.ReadCloser
	// Opened describes the file when it was opened.
	Opened() Info
	// Now describes the opened file as it is: it may have grown.
	Now() (Info, error)
	Close() error
}
