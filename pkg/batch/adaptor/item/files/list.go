package files

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
)

// file is one of the list.
type file struct {
	path string
	// mark is made of its size and the time of its last change.
	mark string
}

// find makes the list.
func find(glob, order string) ([]file, error) {
	paths, err := filestream.Find(glob)
	if err != nil {
		return nil, err
	}
	type found struct {
		file
		modified int64
	}
	list := make([]found, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(path, "\n\t") {
			return nil, fmt.Errorf("%q: a tab or a line end in the name of a file is not supported", path)
		}
		list[i] = found{file{path, markOf(info)}, info.ModTime().UnixMicro()}
	}
	if order == byModified {
		slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.modified, b.modified) })
	}
	files := make([]file, len(list))
	for i := range list {
		files[i] = list[i].file
	}
	return files, nil
}

func markOf(info fs.FileInfo) string {
	text := fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixMicro())
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))
}

// changed says how the file differs from what it was; empty if it does not. gone says that it
// is not there.
func (f file) changed() (what string, gone bool, err error) {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is not there any more", true, nil
	case err != nil:
		return "", false, err
	case markOf(info) != f.mark:
		return "its size or the time of its last change is another", false, nil
	}
	return "", false, nil
}

// maxList bounds the list in the step's context, which has 64 KB for all (rule D4).
const maxList = 40 << 10

// encode returns the form in which the list is kept.
func encode(files []file) (string, error) {
	var text bytes.Buffer
	zip := gzip.NewWriter(&text)
	for _, f := range files {
		if _, err := fmt.Fprintf(zip, "%s\t%s\n", f.path, f.mark); err != nil {
			return "", err
		}
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	list := base64.StdEncoding.EncodeToString(text.Bytes())
	if len(list) > maxList {
		return "", fmt.Errorf("%d files are more than can be kept in mind for a restart (%d bytes, allowed are %d): make partitions of them, partition: {by: {files: GLOB}}", len(files), len(list), maxList)
	}
	return list, nil
}

// decode reads what encode wrote.
func decode(list string) ([]file, error) {
	packed, err := base64.StdEncoding.DecodeString(list)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zip, 64<<20))
	if err != nil {
		return nil, err
	}
	var files []file
	for line := range strings.Lines(string(text)) {
		path, mark, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("%q is no file with its mark", line)
		}
		files = append(files, file{path, mark})
	}
	return files, nil
}

// sum tells a list from others.
func sum(list string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(list))) }
