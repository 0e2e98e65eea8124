package files

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/filestream"
)

func find(ctx context.Context, glob, order string) ([]filestream.Listed, error) {
	paths, err := filestream.Find(ctx, glob)
	if err != nil {
		return nil, err
	}
	type found struct {
		filestream.Listed
		modified int64
	}
	list := make([]found, len(paths))
	for i, path := range paths {
		info, err := confine.From(ctx).Stat(path)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(path, "\n\t") {
			return nil, fmt.Errorf("%q: a tab or a line end in the name of a file is not supported", path)
		}
		list[i] = found{filestream.Listed{Path: path, Mark: filestream.MarkOf(info)}, info.ModTime().UnixMicro()}
	}
	if order == byModified {
		slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.modified, b.modified) })
	}
	files := make([]filestream.Listed, len(list))
	for i := range list {
		files[i] = list[i].Listed
	}
	return files, nil
}

// of the paths, whatever the current state of the files
func sum(files []filestream.Listed) string {
	var paths strings.Builder
	for _, f := range files {
		paths.WriteString(f.Path + "\n")
	}
	return sumOfText(paths.String())
}

// in positions of earlier versions
func sumOfText(list string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(list))) }
