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
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// PartSuffix begins the suffix of a file that is not complete yet.
const PartSuffix = ".part."

// partName adds a random part for a history that was restored from a backup.
func partName(path string, a core.Attempt) (string, error) {
	name := path + PartSuffix + a.Scope() + "-" + strconv.FormatInt(int64(a.ID), 10) + "-" + strings.ToLower(rand.Text()[:8])
	if over := len(filepath.Base(name)) - longestName; over > 0 {
		return "", fmt.Errorf("%s: the name is too long by %d bytes: while the file is written, the name of its part has %d more", path, over, len(name)-len(path))
	}
	return name, nil
}

const longestName = 255

func partPattern() *regexp.Regexp {
	return regexp.MustCompile(`^\.part\.([0-9a-f]{12})-(\d+)-[a-z2-7]{8}$`)
}

// survey examines the files of other attempts next to PATH. A file locked by another step, instance
// or history, or by another writer of this attempt, refuses PATH. A lock of an earlier attempt of
// the same step does not, since a stopped process keeps its locks: its files are removed after the
// first commit.
func (o *Output) survey() error {
	dir, base := filepath.Split(o.cfg.Path)
	names, err := readNames(o.files, dir)
	if err != nil {
		return pathError(dir, err)
	}
	pattern, scope := partPattern(), o.attempt.Scope()
	for _, name := range names {
		rest, is := strings.CutPrefix(name, base)
		if !is {
			continue
		}
		found := pattern.FindStringSubmatch(rest)
		if found == nil {
			continue
		}
		id, err := strconv.ParseInt(found[2], 10, 64)
		switch {
		case err != nil: // too many digits for an attempt of ours
		case found[1] == scope && id < int64(o.attempt.ID):
			o.earlier = append(o.earlier, dir+name)
		case isLocked(o.files, dir+name):
			return fmt.Errorf("%s is being written by another execution, step, attempt or writer (%s is in use; if it is not, remove it)", o.cfg.Path, name)
		case found[1] == scope && id == int64(o.attempt.ID): // of a history that was restored from a backup
			o.earlier = append(o.earlier, dir+name)
		}
	}
	return nil
}

// surveyLeft notes the files of earlier attempts with another path: such an attempt may wake, too.
func (o *Output) surveyLeft(at *OutputPosition) error {
	paths := map[string]bool{o.cfg.Path: true}
	needed := o.neededByOthers(at)
	note := func(path string) error {
		if path == "" || paths[path] {
			return nil
		}
		paths[path] = true
		o.files.Free(path) // an earlier attempt was admitted to it
		names, err := partsOf(o.files, path, func(scope string, id int64) bool {
			return scope == o.attempt.Scope() && id < int64(o.attempt.ID)
		})
		for _, name := range names {
			if !needed[name[len(path):]] {
				o.earlier = append(o.earlier, name)
			}
		}
		return err
	}
	var errs []error
	if at != nil {
		errs = append(errs, note(at.Path))
	}
	for _, left := range o.attempt.Left {
		var position OutputPosition
		if json.Unmarshal(left, &position) == nil { // else it is of a writer of another kind
			errs = append(errs, note(position.Path))
		}
	}
	return errors.Join(errs...)
}

func (o *Output) neededByOthers(at *OutputPosition) map[string]bool {
	needed := map[string]bool{}
	for _, from := range o.attempt.From {
		var position OutputPosition
		if json.Unmarshal(from, &position) == nil && (at == nil || position.Part != at.Part) {
			needed[position.Part] = true
		}
	}
	return needed
}

func partsOf(files *confine.Files, path string, match func(scope string, id int64) bool) ([]string, error) {
	dir, base := filepath.Split(path)
	names, err := readNames(files, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, pathError(dir, err)
	}
	pattern := partPattern()
	var list []string
	for _, name := range names {
		rest, is := strings.CutPrefix(name, base)
		found := pattern.FindStringSubmatch(rest)
		if !is || found == nil {
			continue
		}
		if id, err := strconv.ParseInt(found[2], 10, 64); err == nil && match(found[1], id) {
			list = append(list, dir+name)
		}
	}
	return list, nil
}

// RemoveLeft removes the parts that attempts of a step, up to one, left next to the file of its
// position. A missing one is not an error.
func RemoveLeft(of core.Attempt, at item.Position) error {
	var position OutputPosition
	if json.Unmarshal(at, &position) != nil || position.Path == "" {
		return nil
	}
	names, err := partsOf(nil, position.Path, func(scope string, id int64) bool {
		return scope == of.Scope() && id <= int64(of.ID)
	})
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

var errLocked = errors.New("it is locked")

// isLocked assumes a lock on a file that may not be read.
func isLocked(files *confine.Files, name string) bool {
	file, err := openPart(files, name, os.O_RDONLY)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	defer file.Close() //nolint:errcheck // it is only read
	return errors.Is(lockFile(file), errLocked)
}

// disk holds the operations of the file system in which the order matters.
type disk interface {
	Sync(f *os.File) error
	SyncDir(dir string) error
	Rename(from, to string) error
	Remove(name string) error
}

type system struct{ files *confine.Files }

func (system) Sync(f *os.File) error          { return f.Sync() }
func (s system) Rename(from, to string) error { return s.files.Rename(from, to) }
func (s system) Remove(name string) error     { return s.files.Remove(name) }
func (s system) SyncDir(dir string) error     { return syncDir(s.files, dir) }

// SyncDir makes new names in dir survive a crash. Windows has no such call.
func SyncDir(ctx context.Context, dir string) error { return syncDir(confine.From(ctx), dir) }

func syncDir(files *confine.Files, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := files.Open(dir)
	if err != nil {
		return pathError(dir, err)
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return pathError(dir, err)
	}
	return nil
}
