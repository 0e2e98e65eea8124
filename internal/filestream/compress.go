package filestream

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
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

func (in *Input) form() compression {
	c := compressionOf(in.cfg.Path, string(in.cfg.Compression))
	if c.name == compressionZip && in.cfg.Compression != compressionZip && in.cfg.Member == "" {
		return compression{}
	}
	return c
}

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

func (in *Input) decompress(c compression) error {
	if c.name == compressionZip {
		return in.openMember()
	}
	raw := bufio.NewReaderSize(in.src, readBytes)
	in.src = raw
	if _, err := raw.Peek(1); err != nil {
		if errors.Is(err, io.EOF) { // an empty file is empty text
			return nil
		}
		return err
	}
	r, free, err := c.read(raw)
	if err != nil {
		return in.notReadable(c, err)
	}
	in.src, in.free = &inflated{r: r, in: in, form: c}, free
	return nil
}

type inflated struct {
	r    io.Reader
	in   *Input
	form compression
	err  error
}

// Read repeats its error; a truncated stream is never the end of the text.
func (d *inflated) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = d.in.notReadable(d.form, err)
	}
	d.err = err
	return n, err
}

func (in *Input) notReadable(c compression, err error) error {
	byName := in.cfg.Compression == "" || in.cfg.Compression == CompressionAuto
	if !byName || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errShrank) { // it is cut
		return fmt.Errorf("not readable as %s: %w", c.name, err)
	}
	return fmt.Errorf("not readable as %s, which its suffix %s implies: %w (compression: none reads it as it is)", c.name, c.suffix, err)
}

// checkHead refuses a compressed file that is not declared: it would be read as garbage.
func (in *Input) checkHead(head []byte, decompressed bool) error {
	if isTar(head) {
		return errors.New("it is a tar archive: extract its files first")
	}
	if decompressed || in.cfg.Compression != "" && in.cfg.Compression != CompressionAuto {
		return nil
	}
	for _, c := range compressions() {
		switch {
		case !bytes.HasPrefix(head, []byte(c.magic)):
		case c.name == compressionZip && isWorkbook(in.cfg.Path):
			return errors.New("it is a workbook: save the sheet as csv first")
		case c.name == compressionZip:
			return errors.New("it is a zip archive: set compression: zip to read its only file, or member to name one of them")
		case c.name == "bzip2" && !isBzip2(head):
		default:
			return fmt.Errorf("it is compressed with %s, but its name does not show it: set compression: %s, or rename it to %s%s", c.name, c.name, filepath.Base(cmp.Or(in.cfg.As, in.cfg.Path)), c.suffix)
		}
	}
	return nil
}

func isBzip2(head []byte) bool {
	const block, end = "1AY&SY", "\x17rE8P\x90"
	return len(head) >= 10 && head[3] >= '1' && head[3] <= '9' && (string(head[4:10]) == block || string(head[4:10]) == end)
}

func isTar(head []byte) bool {
	const mark = 257
	return len(head) >= mark+5 && string(head[mark:mark+5]) == "ustar" && bytes.IndexByte(head[:mark], 0) >= 0
}

func isWorkbook(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".xlsx", ".xlsm", ".ods":
		return true
	}
	return false
}
