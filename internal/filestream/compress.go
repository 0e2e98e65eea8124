package filestream

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// The values of a `compression` key.
const (
	CompressionAuto = "auto" // by the suffix of the path
	CompressionNone = "none"
	CompressionGzip = "gzip"
	compressionZip  = "zip"
)

// ReadCompression is the value of a reader's key `compression`; empty means auto.
type ReadCompression string

// WriteCompression is the value of a writer's key `compression`; empty means auto.
type WriteCompression string

// Values lists the forms (registry.Choice).
func (ReadCompression) Values() []string {
	names := []string{CompressionAuto, CompressionNone}
	for _, c := range compressions() {
		names = append(names, c.name)
	}
	return names
}

// Page is empty: the values are listed where they are used (registry.Choice).
func (ReadCompression) Page() string { return "" }

// Values lists the forms (registry.Choice).
func (WriteCompression) Values() []string {
	names := []string{CompressionAuto, CompressionNone}
	for _, c := range compressions() {
		if c.write != nil {
			names = append(names, c.name)
		}
	}
	return names
}

// Page is empty: the values are listed where they are used (registry.Choice).
func (WriteCompression) Page() string { return "" }

type compression struct {
	name, suffix string
	magic        string // such a file begins with it
	read         func(io.Reader) (io.Reader, func(), error)
	write        func(io.Writer) (frames, error)
}

func (c compression) decompressed(data []byte) ([]byte, error) {
	r, free, err := c.read(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if free != nil {
		defer free()
	}
	return io.ReadAll(r)
}

// frames writes gzip members or zstd frames: Close ends one, Reset begins the next.
type frames interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func compressions() []compression {
	return []compression{
		{
			name: CompressionGzip, suffix: ".gz", magic: "\x1f\x8b\x08",
			read: func(r io.Reader) (io.Reader, func(), error) {
				gz, err := gzip.NewReader(r)
				return gz, nil, err
			},
			write: func(w io.Writer) (frames, error) { return gzip.NewWriter(w), nil },
		},
		{
			name: "zstd", suffix: ".zst", magic: "\x28\xb5\x2f\xfd",
			read: func(r io.Reader) (io.Reader, func(), error) {
				d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(largestWindow))
				if err != nil {
					return nil, nil, err
				}
				return d, d.Close, nil
			},
			write: func(w io.Writer) (frames, error) {
				return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
			},
		},
		{
			name: "bzip2", suffix: ".bz2", magic: "BZh",
			read: func(r io.Reader) (io.Reader, func(), error) { return bzip2.NewReader(r), nil, nil },
		},
		{
			name: "xz", suffix: ".xz", magic: "\xfd7zXZ\x00",
			read: func(r io.Reader) (io.Reader, func(), error) {
				raw := &tail{r: r}
				x, err := xz.NewReader(raw)
				return &footed{x: x, raw: raw}, nil, err
			},
		},
		{name: compressionZip, suffix: ".zip", magic: "PK\x03\x04"},
	}
}

// largestWindow bounds the memory of a zstd frame: as much as zstd -22 --ultra --long=29 takes.
const largestWindow = 512 << 20

// WithoutSuffix returns the path without the suffix of a compression.
func WithoutSuffix(path string) string {
	for _, c := range compressions() {
		if c.suffix != "" && strings.HasSuffix(strings.ToLower(path), c.suffix) {
			return path[:len(path)-len(c.suffix)]
		}
	}
	return path
}

func compressionOf(path, key string) compression {
	lower := strings.ToLower(path)
	for _, c := range compressions() {
		if c.name == key || (key == "" || key == CompressionAuto) && strings.HasSuffix(lower, c.suffix) {
			return c
		}
	}
	return compression{}
}

// footed must have the end of xz: the library takes a file truncated after a header for an empty
// one.
type footed struct {
	x   *xz.Reader
	raw *tail
}

func (f *footed) Read(p []byte) (int, error) {
	n, err := f.x.Read(p)
	if errors.Is(err, io.EOF) && string(f.raw.last[:]) != "YZ" {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

type tail struct {
	r    io.Reader
	last [2]byte
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	end := bytes.TrimRight(p[:n], "\x00")
	for _, c := range end[max(0, len(end)-2):] {
		t.last[0], t.last[1] = t.last[1], c
	}
	return n, err
}

const readBytes = 64 << 10
