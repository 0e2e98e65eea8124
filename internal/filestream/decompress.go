package filestream

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

func (in *Input) form() compression {
	c := compressionOf(in.cfg.Path, string(in.cfg.Compression))
	if c.name == compressionZip && in.cfg.Compression != compressionZip && in.cfg.Member == "" {
		return compression{}
	}
	return c
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
