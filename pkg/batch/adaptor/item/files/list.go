package files

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
)

func find(ctx context.Context, glob, order string) ([]filestream.Listed, error) {
	found, err := place.Find(ctx, glob)
	if err != nil {
		return nil, err
	}
	if order == byModified {
		slices.SortStableFunc(found, func(a, b place.Info) int { return a.Modified.Compare(b.Modified) })
	}
	files := make([]filestream.Listed, len(found))
	for i, f := range found {
		if strings.ContainsAny(f.Path, "\n\t") {
			return nil, fmt.Errorf("%q: a tab or a line end in the name of a file is not supported", f.Path)
		}
		files[i] = filestream.Listed{Path: f.Path, Mark: f.Mark()}
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
