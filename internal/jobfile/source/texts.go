package source

import (
	"io/fs"
	"strings"
	"time"
)

// texted is a file system of texts by name.
type texted map[string]string

// Open implements fs.FS.
func (t texted) Open(name string) (fs.File, error) {
	text, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &textFile{strings.NewReader(text), name}, nil
}

type textFile struct {
	*strings.Reader
	name string
}

// Stat implements fs.File.
func (f *textFile) Stat() (fs.FileInfo, error) { return textInfo{f.name, f.Size()}, nil }

// Close implements fs.File.
func (f *textFile) Close() error { return nil }

type textInfo struct {
	name string
	size int64
}

func (i textInfo) Name() string { return i.name }

func (i textInfo) Size() int64 { return i.size }

func (i textInfo) Mode() fs.FileMode { return 0o444 }

func (i textInfo) ModTime() time.Time { return time.Time{} }

func (i textInfo) IsDir() bool { return false }

func (i textInfo) Sys() any { return nil }
