package filestream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// PartSuffix begins the suffix of a file that is not complete yet.
const PartSuffix = ".part."

// partName adds a random part for a history that was restored from a backup. The names of parts that are written together
// also have the scope of the step and the attempt that planned them: its other parts know them.
func partName(path string, a core.Attempt, together bool) (string, error) {
	name := path + PartSuffix + a.Scope() + "-" + strconv.FormatInt(int64(a.ID), 10) + "-" + strings.ToLower(rand.Text()[:8])
	if together {
		name += "-" + whole(a).Scope() + "-" + strconv.FormatInt(int64(a.Manager), 10)
	}
	if over := len(filepath.Base(name)) - longestName; over > 0 {
		return "", fmt.Errorf("%s: the name is too long by %d bytes: while the file is written, the name of its part has %d more", path, over, len(name)-len(path))
	}
	return name, nil
}

const longestName = 255

// whole is the step of a partition.
func whole(a core.Attempt) core.Attempt {
	a.Step, _, _ = strings.Cut(a.Step, ":")
	a.ID = a.Manager
	return a
}

// owner is the attempt in the name of a part.
type owner struct {
	scope string
	id    int64
	step  string // with manager, of a part that is written together
	from  int64
}

// ownerOf reads the suffix of a part. One with too many digits is of no attempt of ours.
func ownerOf(pattern *regexp.Regexp, suffix string) (of owner, is bool) {
	found := pattern.FindStringSubmatch(suffix)
	if found == nil {
		return of, false
	}
	id, err := strconv.ParseInt(found[2], 10, 64)
	of = owner{scope: found[1], id: id, step: found[3]}
	if of.step != "" && err == nil {
		of.from, err = strconv.ParseInt(found[4], 10, 64)
	}
	return of, err == nil
}

// isOf reports whether an attempt, or an earlier one, made the part, or planned the partition that did.
func (w owner) isOf(a core.Attempt) bool {
	return w.scope == a.Scope() && w.id <= int64(a.ID) || w.isPartOf(a)
}

func (w owner) isPartOf(a core.Attempt) bool { return w.step == a.Scope() && w.from <= int64(a.ID) }

func partPattern() *regexp.Regexp {
	return regexp.MustCompile(`^\.part\.([0-9a-f]{12})-(\d+)-[a-z2-7]{8}(?:-([0-9a-f]{12})-(\d+))?$`)
}

// eachPart calls f for each part of path in its folder.
func eachPart(files *confine.Files, path string, f func(name string, of owner) error) error {
	dir, base := filepath.Split(path)
	names, err := readNames(files, dir)
	if err != nil {
		return pathError(dir, err)
	}
	pattern := partPattern()
	for _, name := range names {
		rest, is := strings.CutPrefix(name, base)
		if !is {
			continue
		}
		if of, is := ownerOf(pattern, rest); is {
			if err := f(dir+name, of); err != nil {
				return err
			}
		}
	}
	return nil
}

func partsOf(files *confine.Files, path string, match func(of owner) bool) (list []string, err error) {
	err = eachPart(files, path, func(name string, of owner) error {
		if match(of) {
			list = append(list, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // the folder
		return nil, nil
	}
	return list, err
}

// RemoveLeft removes the parts that attempts of a step, up to one, left next to the file of its
// position. A missing one is not an error.
func RemoveLeft(ctx context.Context, of core.Attempt, at item.Position) error {
	var position OutputPosition
	if json.Unmarshal(at, &position) != nil || position.Path == "" {
		return nil
	}
	if urlpath.Is(position.Path) {
		return RemoveParts(ctx, of, position.Path)
	}
	names, err := partsOf(nil, position.Path, func(w owner) bool { return w.isOf(of) })
	errs := []error{err}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, pathError(name, err))
		}
	}
	return errors.Join(errs...)
}

func readNames(files *confine.Files, dir string) ([]string, error) {
	if dir == "" {
		dir = "."
	}
	d, err := files.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // it is only read
	return d.Readdirnames(-1)
}

// openPart does not follow a link, which another process may have put in its place.
func openPart(files *confine.Files, name string, flags int) (*os.File, error) {
	file, err := files.OpenFile(name, flags|noFollow|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// folderWait bounds the wait for another process: a stopped one would hold the lock for ever.
const folderWait = 2 * time.Second

// lockFolder is best effort: without the lock, the work continues.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := confine.From(ctx).Open(dir)
	if err != nil {
		return nil, pathError(dir, err)
	}
	until := time.Now().Add(folderWait)
	for errors.Is(lockFile(d), errLocked) && time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), d.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return func() { d.Close() }, nil //nolint:errcheck // it is only read, and closing it ends the lock
}

// isLocked assumes a lock on a file that may not be read.
func isLocked(files *confine.Files, name string) bool {
	file, err := openPart(files, name, os.O_RDONLY)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	defer file.Close() //nolint:errcheck // it is only read
	return errors.Is(lockFile(file), errLocked)
}
