package filetask

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type run struct {
	*tasklet
	disk  *confine.Files
	op    string
	stop  <-chan struct{}
	scope int64
	// An earlier attempt has found files.
	begun bool

	files, bytes   int64
	path, checksum string
}

type job struct {
	from, to string
	info     fs.FileInfo
	done     bool
}

func (r *run) all(ctx context.Context, pattern string, begin func() error) error {
	find := r.find
	if r.config.Of != "" {
		find = func(pattern string) ([]job, error) { return r.findRead(ctx, pattern) }
	}
	jobs, err := find(pattern)
	if err != nil {
		return err
	}
	switch {
	case len(jobs) > 0:
	case r.config.Of != "":
		return nil
	default:
		return r.none(pattern)
	}
	if r.op == opChecksum {
		if r.config.As == "" {
			return r.checksums(ctx, jobs)
		}
		if err := r.prepare([]job{{to: r.config.As}}, begin); err != nil {
			return err
		}
		return r.checksums(ctx, jobs)
	}
	if r.op != opDelete {
		if err := r.targets(ctx, jobs); err != nil {
			return err
		}
	}
	if err := r.prepare(jobs, begin); err != nil {
		return err
	}
	for _, j := range jobs {
		if err := r.checkStop(ctx); err != nil {
			return err
		}
		if err := r.one(ctx, j); err != nil {
			return err
		}
		r.files++
		r.bytes += j.info.Size()
	}
	if len(jobs) == 1 {
		r.path = jobs[0].to
	}
	return nil
}

// prepare stores a mark for later attempts before the first change.
func (r *run) prepare(jobs []job, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	return r.removeLeft(jobs)
}

func (r *run) checkStop(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.stop:
		return core.ErrStopped
	default:
		return nil
	}
}

func (r *run) find(pattern string) ([]job, error) {
	if info, err := r.disk.Lstat(pattern); err == nil {
		if err := regular(pattern, info); err != nil {
			return nil, err
		}
		return []job{{from: pattern, info: info}}, nil
	} else if !isPattern(pattern) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	slices.Sort(names)
	var jobs []job
	for _, name := range names {
		info, err := r.disk.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case info.IsDir(), !r.means(name):
			continue
		}
		if err := regular(name, info); err != nil {
			return nil, err
		}
		jobs = append(jobs, job{from: name, info: info})
	}
	return jobs, nil
}

// means excludes half-written files, and results of an earlier attempt.
func (r *run) means(name string) bool {
	base := filepath.Base(name)
	switch compressed := strings.HasSuffix(base, ".gz"); {
	case strings.HasPrefix(base, ".") && strings.Contains(base, ".surfin-"):
		return false
	case r.op == opGzip:
		return !compressed
	case r.op == opGunzip && r.config.As == "":
		return compressed
	}
	return true
}

func isPattern(text string) bool { return strings.ContainsAny(text, `*?[`) }

func regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder: write %s for the files in it", name, filepath.Join(name, "*"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file (%v)", name, info.Mode().Type())
	}
	return nil
}

// After an attempt that found files the step has either done its work, or the files are gone without a
// result: an error.
func (r *run) none(pattern string) error {
	if r.begun && (r.op == opDelete || r.consumes()) {
		if isPattern(pattern) || r.op == opDelete {
			return nil
		}
		to, err := r.target(pattern)
		if err != nil {
			return err
		}
		if _, err := r.disk.Lstat(to); err != nil {
			return fmt.Errorf("%s is gone, and %s does not exist: someone has removed them since an earlier attempt", pattern, to)
		}
		r.path = to
		return nil
	}
	switch {
	case r.config.Missing == "ignore":
		return nil
	case isPattern(pattern):
		return fmt.Errorf("no file matches %s (set `missing: ignore` if that is not an error): %w", pattern, fs.ErrNotExist)
	}
	return fmt.Errorf("there is no file %s (set `missing: ignore` if that is not an error): %w", pattern, fs.ErrNotExist)
}

func (r *run) consumes() bool {
	return r.op == opMove || (r.op == opGzip || r.op == opGunzip) && !r.config.Keep
}

func (r *run) target(from string) (string, error) {
	if r.config.As != "" {
		return r.config.As, nil
	}
	name, folder := filepath.Base(from), r.config.To
	if folder == "" {
		folder = filepath.Dir(from)
	}
	switch r.op {
	case opGzip:
		name += ".gz"
	case opGunzip:
		short, ok := strings.CutSuffix(name, ".gz")
		if !ok || short == "" {
			return "", fmt.Errorf("%s does not end in .gz: name the result with `as`", from)
		}
		name = short
	}
	return filepath.Join(folder, name), nil
}

// targets refuses, before anything is done, any path that would replace something.
func (r *run) targets(ctx context.Context, jobs []job) error {
	if r.config.As != "" && len(jobs) > 1 {
		return fmt.Errorf("as: %d files match, but %s is one name: use `to` with a folder", len(jobs), r.config.As)
	}
	of := map[string]string{}
	var errs []error
	for i := range jobs {
		j := &jobs[i]
		var err error
		if j.to, err = r.target(j.from); err != nil {
			return err
		}
		if other, twice := of[j.to]; twice {
			errs = append(errs, fmt.Errorf("%s and %s would both become %s", other, j.from, j.to))
			continue
		}
		of[j.to] = j.from
		if err := r.checkTarget(ctx, j); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *run) checkTarget(ctx context.Context, j *job) error {
	info, err := r.disk.Lstat(j.to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		if folder, failed := r.disk.Stat(filepath.Dir(j.to)); failed == nil && !folder.IsDir() {
			return fmt.Errorf("%s is not a folder: name a file with `as`", filepath.Dir(j.to))
		}
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name it with `to`", j.to)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file (%v), and only regular files are replaced", j.to, info.Mode().Type())
	case os.SameFile(info, j.info):
		if filepath.Clean(j.from) == filepath.Clean(j.to) {
			return fmt.Errorf("%s would become itself", j.from)
		}
		j.done = r.op == opMove || r.op == opCopy // linked, and not yet removed
	default:
		if j.done, err = r.sameContent(ctx, j.from, j.to); err != nil {
			return err
		}
	}
	if !j.done && !r.config.Overwrite {
		return fmt.Errorf("%s exists already, with other content than %s would write: remove it, or set `overwrite: true`", j.to, j.from)
	}
	return nil
}

// Killed attempts of this step leave half-written files.
func (r *run) removeLeft(jobs []job) error {
	if !r.begun {
		return nil
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		dir := filepath.Dir(j.to)
		if j.to == "" || seen[dir] {
			continue
		}
		seen[dir] = true
		entries, err := r.disk.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasPrefix(name, ".") && strings.Contains(name, r.mark()) {
				if err := r.remove(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *run) mark() string { return fmt.Sprintf(".surfin-%d-", r.scope) }

func (r *run) one(ctx context.Context, j job) error {
	if r.op == opDelete {
		if err := r.remove(j.from); err != nil {
			return err
		}
		return r.syncDir(ctx, filepath.Dir(j.from))
	}
	if err := r.around("mkdir", filepath.Dir(j.to), func() error { return filestream.MakeFolder(ctx, filepath.Dir(j.to)) }); err != nil {
		return err
	}
	if !j.done {
		put := r.write
		if r.op == opMove {
			put = r.move
		}
		if err := put(ctx, j); err != nil {
			return err
		}
	}
	if err := r.syncDir(ctx, filepath.Dir(j.to)); err != nil {
		return err
	}
	if !r.consumes() {
		return nil
	}
	if err := r.remove(j.from); err != nil {
		return err
	}
	return r.syncDir(ctx, filepath.Dir(j.from))
}

// A missing file counts as removed.
func (r *run) remove(name string) error {
	err := r.around("remove", name, func() error { return r.disk.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *run) syncDir(ctx context.Context, dir string) error {
	return r.around("sync", dir, func() error { return filestream.SyncDir(ctx, dir) })
}
