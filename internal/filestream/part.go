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

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PartSuffix begins what a file that is not complete yet has behind its name.
const PartSuffix = ".part."

// partName makes a name that no other attempt has: the scope of its step, the
// attempt, and something random for a history that was restored from a backup.
func partName(path string, a core.Attempt) (string, error) {
	return path + PartSuffix + a.Scope() + "-" + strconv.FormatInt(int64(a.ID), 10) + "-" + strings.ToLower(rand.Text()[:8]), nil
}

// partPattern matches what partName adds.
func partPattern() *regexp.Regexp {
	return regexp.MustCompile(`^\.part\.([0-9a-f]{12})-(\d+)-[a-z2-7]{8}$`)
}

// survey looks at the files of other attempts beside PATH. One that is locked by
// another step, instance or history, or by another writer of this attempt, refuses
// PATH: two would write it. A lock of an earlier attempt of the same step does not,
// since a stopped process keeps its locks: its files are noted, to be removed after
// the first commit.
func (o *Output) survey() error {
	dir, base := filepath.Split(o.cfg.Path)
	names, err := readNames(dir)
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
		case found[1] == scope && id > int64(o.attempt.ID):
			return fmt.Errorf("%s: a later attempt of this step has begun (%s)", o.cfg.Path, name)
		case isLocked(dir + name):
			return fmt.Errorf("%s is being written by another execution, step or writer (%s is in use)", o.cfg.Path, name)
		}
	}
	return nil
}

// RemoveLeft removes the parts that attempts of a step left beside the file that the
// position of one of them names; at may be of a writer of any kind. Files of other
// steps are not touched, and one that is not there, as on another machine, is no
// error.
func RemoveLeft(of core.Attempt, at core.Position) error {
	var position OutputPosition
	if json.Unmarshal(at, &position) != nil || position.Path == "" {
		return nil
	}
	dir, base := filepath.Split(position.Path)
	names, err := readNames(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return pathError(dir, err)
	}
	var errs []error
	for _, name := range names {
		rest, is := strings.CutPrefix(name, base)
		found := partPattern().FindStringSubmatch(rest)
		if !is || found == nil || found[1] != of.Scope() {
			continue
		}
		if err := os.Remove(dir + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, pathError(dir+name, err))
		}
	}
	return errors.Join(errs...)
}

// readNames lists a folder without asking for more than the names.
func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // it is only read
	return d.Readdirnames(-1)
}

// openPart opens a part that is there. It follows no link, which somebody else may
// have put in its place.
func openPart(name string, flags int) (*os.File, error) {
	file, err := os.OpenFile(name, flags|noFollow|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is no regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// folderWait bounds the wait for another process that is opening a file in the
// folder: a stopped one would hold it for ever, and names are the safety, not
// locks.
const folderWait = 2 * time.Second

// lockFolder makes this the only process that opens an output in the folder. It is
// best effort: where it cannot be had, it is done without.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
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

// errLocked says that somebody else holds the lock.
var errLocked = errors.New("it is locked")

// isLocked reports whether a process holds the lock of the file.
func isLocked(name string) bool {
	file, err := openPart(name, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // it is only read
	return errors.Is(lockFile(file), errLocked)
}

// disk is what of the file system must happen in a certain order. Tests observe it.
type disk interface {
	Sync(f *os.File) error
	SyncDir(dir string) error
	Rename(from, to string) error
	Remove(name string) error
}

type system struct{}

func (system) Sync(f *os.File) error        { return f.Sync() }
func (system) Rename(from, to string) error { return os.Rename(from, to) }
func (system) Remove(name string) error     { return os.Remove(name) }

// SyncDir makes new names in dir survive a crash. Windows has no such call, and
// keeps names in order by itself.
func (system) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
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
