package filetask

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
)

// findRead returns the files that the step `of` has read and that match, except those that an earlier
// attempt has handled.
func (r *run) findRead(ctx context.Context, pattern string) ([]job, error) {
	listed, err := r.listed(ctx, pattern)
	if err != nil {
		return nil, err
	}
	var jobs []job
	var errs []error
	for _, f := range listed {
		j, done, err := r.readFile(ctx, f)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !done:
			jobs = append(jobs, j)
		}
		if len(errs) == maxNamed {
			errs = append(errs, errors.New("there may be more"))
			break
		}
	}
	return jobs, errors.Join(errs...)
}

const maxNamed = 5

func (r *run) listed(ctx context.Context, pattern string) ([]filestream.Listed, error) {
	if r.records == nil {
		return nil, errors.New("of: there is no history of the files that a step has read")
	}
	records, err := r.records(ctx, r.config.Of)
	if err != nil {
		return nil, fmt.Errorf("of: %w", err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("of: step %s has not run in this instance", r.config.Of)
	}
	read, err := filestream.ReadBy(records)
	if err != nil && !errors.Is(err, filestream.ErrNoList) { // a plan without partitions
		return nil, fmt.Errorf("of: step %s: %w", r.config.Of, err)
	}
	absolute, err := urlpath.Abs(pattern)
	if err != nil {
		return nil, err
	}
	read = slices.DeleteFunc(read, func(f filestream.Listed) bool {
		matches, err := filepath.Match(absolute, f.Path)
		return (err != nil || !matches) && f.Path != absolute || !r.means(f.Path)
	})
	slices.SortFunc(read, func(a, b filestream.Listed) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(read), nil
}

// done means that an earlier attempt has handled the file.
func (r *run) readFile(ctx context.Context, f filestream.Listed) (j job, done bool, err error) {
	j, err = r.found(ctx, f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		done, err = r.isGone(ctx, f)
		return job{}, done, err
	case err != nil:
		return job{}, false, err
	case f.Mark == "" || j.info.Mark() == f.Mark:
		if j.file != nil {
			err = regular(f.Path, j.file)
		}
		return j, false, err
	}
	if r.begun && r.op != opGzip && r.op != opGunzip {
		// The sender may have sent a new file under the name of a moved one.
		if at, err := r.result(ctx, f.Path); r.op == opDelete || err == nil && at.Mark() == f.Mark {
			return job{}, true, nil
		}
	}
	return job{}, false, fmt.Errorf("%s has changed since step %s listed it, so its content may not have been read; "+
		"load it in a separate instance, under another name, or remove it", f.Path, r.config.Of)
}

func (r *run) isGone(ctx context.Context, f filestream.Listed) (done bool, err error) {
	if r.begun && r.op == opDelete {
		return true, nil
	}
	if r.begun && r.consumes() {
		if _, err := r.result(ctx, f.Path); err == nil {
			return true, nil
		}
	}
	if r.config.Missing == "ignore" {
		return true, nil
	}
	return false, fmt.Errorf("%s, which step %s has read, does not exist any more (set `missing: ignore` if that is not an error): %w", f.Path, r.config.Of, fs.ErrNotExist)
}

func (r *run) found(ctx context.Context, name string) (job, error) {
	if urlpath.Is(name) {
		info, err := place.Stat(ctx, name)
		return job{from: name, info: info}, err
	}
	info, err := r.disk.Lstat(name)
	if err != nil {
		return job{}, err
	}
	return diskJob(name, info), nil
}

func (r *run) result(ctx context.Context, from string) (place.Info, error) {
	to, err := r.target(from)
	if err != nil {
		return place.Info{}, err
	}
	j, err := r.found(ctx, to)
	return j.info, err
}
