package filestream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
)

// CheckPattern refuses a text that is not a pattern of files.
func CheckPattern(glob string) error {
	switch _, bad := filepath.Match(glob, ""); {
	case glob == "":
		return errors.New("the pattern is missing")
	case bad != nil:
		return fmt.Errorf("%q is not a pattern: a [ needs its ], and a range its two ends (a literal [ is written \\[)", glob)
	case strings.Contains(glob, "**"):
		return fmt.Errorf("%q: ** is not supported; name the folders, such as */*.csv", glob)
	}
	return nil
}

// Find returns the sorted absolute paths of matching files, without folders. An unreadable folder
// is an error, a missing one is not.
func Find(ctx context.Context, glob string) ([]string, error) {
	// A glob silently leaves out folders that it may not read.
	files := confine.From(ctx)
	if err := unreadable(files, folderOf(glob)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found, err := filepath.Glob(glob)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", glob, err)
	}
	var paths []string
	for _, path := range found {
		info, err := files.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func unreadable(files *confine.Files, folder string) error {
	d, err := files.Open(folder)
	if err != nil {
		return err
	}
	_, err = d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

func folderOf(glob string) string {
	folder := glob
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		folder = glob[:i]
	}
	return filepath.Dir(folder + "x")
}
