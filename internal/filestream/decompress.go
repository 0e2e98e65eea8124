package filestream

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/place"
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
	if !byName || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, place.ErrShrank) { // it is cut
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

// CheckMember refuses a key `member` that is not a pattern, or has no archive to look in.
func CheckMember(member string, compression ReadCompression) error {
	if member == "" {
		return nil
	}
	if compression != "" && compression != CompressionAuto && compression != compressionZip {
		return fmt.Errorf("it names a file in a zip archive, but compression is %s: remove one of them", compression)
	}
	if _, err := path.Match(member, ""); err != nil {
		return fmt.Errorf("%q is not a pattern: a [ needs its ] (write a literal [ as \\[)", member)
	}
	return nil
}

func (in *Input) openMember() error {
	if in.file == nil {
		return errors.New("a zip archive cannot be read from the standard input: write it to a file first")
	}
	if in.print.Size == 0 {
		return errors.New("not readable as zip: the file is empty")
	}
	archive, err := zip.NewReader(io.NewSectionReader(in.file, 0, in.print.Size), in.print.Size)
	if err != nil {
		return in.notReadable(compressionOf("", compressionZip), err)
	}
	member, err := oneMember(archive, in.cfg.Member)
	if err != nil {
		return err
	}
	if member.Flags&1 != 0 {
		return fmt.Errorf("its file %s is encrypted: extract it first", member.Name)
	}
	r, err := member.Open()
	if err != nil {
		return fmt.Errorf("its file %s: %w", member.Name, err)
	}
	in.member = member.Name
	in.src = &inflated{r: r, in: in, form: compressionOf("", compressionZip)}
	return nil
}

func oneMember(archive *zip.Reader, pattern string) (*zip.File, error) {
	var files, found []*zip.File
	for _, f := range archive.File {
		// A Mac adds files about the files.
		if f.FileInfo().IsDir() || strings.HasPrefix(f.Name, "__MACOSX/") || path.Base(f.Name) == ".DS_Store" {
			continue
		}
		files = append(files, f)
		if pattern == "" || matches(pattern, f.Name) {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(files) == 0:
		return nil, errors.New("the zip archive contains no files")
	case len(found) == 0:
		return nil, fmt.Errorf("the zip archive has no file %s (member); it has %s", pattern, namesOf(files))
	case pattern == "":
		return nil, fmt.Errorf("the zip archive has %d files: select one with member: %s", len(found), namesOf(found))
	}
	return nil, fmt.Errorf("%d files of the zip archive are named %s (member), but only one can be read: %s", len(found), pattern, namesOf(found))
}

func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	is, err := path.Match(pattern, name)
	return is && err == nil
}

func namesOf(files []*zip.File) string {
	const most = 10
	var names []string
	for _, f := range files {
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}
