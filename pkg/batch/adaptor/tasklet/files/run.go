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
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type run struct {
	*tasklet
	disk  *confine.Files
	op    string
	stop  <-chan struct{}
	scope int64
	// commit fails if a later attempt has taken over.
	commit func(ctx context.Context) error
	// An earlier attempt has found files.
	begun bool

	files, bytes   int64
	path, checksum string
}

type job struct {
	from, to string
	info     place.Info
	file     fs.FileInfo // on the disk only
	done     bool
}

func diskJob(name string, info fs.FileInfo) job {
	return job{from: name, info: place.DiskInfo(name, info), file: info}
}

func (r *run) all(ctx context.Context, pattern string, begin func() error) error {
	find := r.find
	switch {
	case r.config.Of != "":
		find = r.findRead
	case urlpath.Is(pattern):
		find = r.findIn
	}
	jobs, err := find(ctx, pattern)
	if err != nil {
		return err
	}
	switch {
	case len(jobs) > 0:
	case r.config.Of != "":
		return nil
	default:
		return r.none(ctx, pattern)
	}
	if r.op == opChecksum {
		if r.config.As == "" {
			return r.checksums(ctx, jobs)
		}
		if err := r.prepare(ctx, []job{{to: r.config.As}}, begin); err != nil {
			return err
		}
		return r.checksums(ctx, jobs)
	}
	if r.op != opDelete {
		if err := r.targets(ctx, jobs); err != nil {
			return err
		}
	}
	if err := r.prepare(ctx, jobs, begin); err != nil {
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
		r.bytes += j.info.Size
	}
	if len(jobs) == 1 {
		r.path = jobs[0].to
	}
	return nil
}

// prepare stores a mark for later attempts before the first change.
func (r *run) prepare(ctx context.Context, jobs []job, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	return r.removeLeft(ctx, jobs)
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

func (r *run) find(_ context.Context, pattern string) ([]job, error) {
	if info, err := r.disk.Lstat(pattern); err == nil {
		if err := regular(pattern, info); err != nil {
			return nil, err
		}
		return []job{diskJob(pattern, info)}, nil
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
		jobs = append(jobs, diskJob(name, info))
	}
	return jobs, nil
}

// findIn looks into another place than the disk.
func (r *run) findIn(ctx context.Context, pattern string) ([]job, error) {
	one, err := r.found(ctx, pattern)
	if err == nil {
		return []job{one}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	list, err := place.Find(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	var jobs []job
	for _, one := range list {
		if r.means(one.Path) {
			jobs = append(jobs, job{from: one.Path, info: one})
		}
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
func (r *run) none(ctx context.Context, pattern string) error {
	if r.begun && (r.op == opDelete || r.consumes()) {
		if isPattern(pattern) || r.op == opDelete {
			return nil
		}
		to, err := r.target(pattern)
		if err != nil {
			return err
		}
		if _, err := r.found(ctx, to); err != nil {
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
	folder, name := filepath.Split(from)
	if r.config.To != "" {
		folder = r.config.To
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
	if urlpath.Is(folder) {
		return strings.TrimRight(folder, "/") + "/" + name, nil
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
	if urlpath.Is(j.to) {
		return r.checkURL(ctx, j)
	}
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
	case j.file != nil && os.SameFile(info, j.file):
		if filepath.Clean(j.from) == filepath.Clean(j.to) {
			return fmt.Errorf("%s would become itself", j.from)
		}
		j.done = r.op == opMove || r.op == opCopy // linked, and not yet removed
	default:
		if j.done, err = r.sameContent(ctx, j.from, j.to); err != nil {
			return err
		}
	}
	return r.mayReplace(j)
}

func (r *run) mayReplace(j *job) error {
	if !j.done && !r.config.Overwrite {
		return fmt.Errorf("%s exists already, with other content than %s would write: remove it, or set `overwrite: true`", j.to, j.from)
	}
	return nil
}

func (r *run) checkURL(ctx context.Context, j *job) error {
	_, err := place.Stat(ctx, j.to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", j.to, err)
	case j.from == j.to:
		return fmt.Errorf("%s would become itself", j.from)
	}
	if j.done, err = r.sameContent(ctx, j.from, j.to); err != nil {
		return err
	}
	return r.mayReplace(j)
}

// Killed attempts of this step leave half-written files.
func (r *run) removeLeft(ctx context.Context, jobs []job) error {
	if !r.begun {
		return nil
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		if urlpath.Is(j.to) {
			if err := r.withdraw(ctx, j.to); err != nil {
				return err
			}
			continue
		}
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

// withdraw removes the parts of killed attempts.
func (r *run) withdraw(ctx context.Context, to string) error {
	if r.attempt == nil {
		return nil
	}
	attempt, err := r.attempt(ctx)
	if err != nil {
		return err
	}
	return filestream.RemoveParts(ctx, attempt, to)
}

func (r *run) mark() string { return fmt.Sprintf(".surfin-%d-", r.scope) }

func (r *run) one(ctx context.Context, j job) error {
	if r.op == opDelete {
		return r.removeFile(ctx, j)
	}
	if err := r.makeFolderOf(ctx, j.to); err != nil {
		return err
	}
	if !j.done {
		put := r.write
		if r.op == opMove && j.file != nil && !urlpath.Is(j.to) {
			put = r.move
		}
		if err := put(ctx, j); err != nil {
			return err
		}
	}
	if err := r.syncFolderOf(ctx, j.to); err != nil {
		return err
	}
	if !r.consumes() {
		return nil
	}
	return r.removeFile(ctx, j)
}

// Other places than the disk have no folders.
func (r *run) makeFolderOf(ctx context.Context, file string) error {
	if urlpath.Is(file) {
		return nil
	}
	dir := filepath.Dir(file)
	return r.around("mkdir", dir, func() error { return filestream.MakeFolder(ctx, dir) })
}

// removeFile removes a source.
func (r *run) removeFile(ctx context.Context, j job) error {
	if j.file == nil {
		return r.around("remove", j.from, func() error {
			in, err := place.KeeperOf(ctx, j.from)
			if err == nil {
				err = in.Remove(ctx, j.info)
			}
			if err != nil {
				return fmt.Errorf("remove %s: %w", j.from, err)
			}
			return nil
		})
	}
	if err := r.remove(j.from); err != nil {
		return err
	}
	return r.syncFolderOf(ctx, j.from)
}

// A missing file counts as removed.
func (r *run) remove(name string) error {
	err := r.around("remove", name, func() error { return r.disk.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *run) syncFolderOf(ctx context.Context, file string) error {
	if urlpath.Is(file) {
		return nil
	}
	dir := filepath.Dir(file)
	return r.around("sync", dir, func() error { return filestream.SyncDir(ctx, dir) })
}
