package repository

import (
	"bytes"
	"io/fs"
)

const prefixMark = "{{prefix}}"

// prefixed is a file system of migrations with the prefix filled in while they
// are read.
type prefixed struct {
	fs.FS
	prefix string
}

// Open opens a folder unchanged and a file with the prefix filled in.
func (p prefixed) Open(name string) (fs.File, error) {
	file, err := p.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(p.FS, name)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte(prefixMark), []byte(p.prefix))
	return &filled{Reader: bytes.NewReader(text), info: filledInfo{info, int64(len(text))}}, nil
}

type filled struct {
	*bytes.Reader
	info filledInfo
}

func (f *filled) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *filled) Close() error               { return nil }

type filledInfo struct {
	fs.FileInfo
	size int64
}

func (i filledInfo) Size() int64 { return i.size }
