// Package confine keeps the files of an execution launched by an API client below the folders that clients
// may name (rule SE3).
//
// It imports core and internal/urlpath.
package confine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Files opens the files of one step through an os.Root, so that a link created in the meantime
// cannot lead out of the roots. The nil *Files has no restrictions: its methods are those of
// package os. Any other is safe for concurrent use.
type Files struct {
	confinement *core.Confinement
	roots       []string

	mu    sync.Mutex
	free  map[string]free
	given []string
}

type free struct {
	real    string // empty: nothing is there
	written bool   // it is not only read
}

// OutsideError reports that a client's path leads out of the folders that clients may name.
type OutsideError struct {
	Path, Real string
	Roots      []string
}

// Error names the path, the folders and the fix.
func (e *OutsideError) Error() string {
	text := "the path " + e.Path
	if e.Real != "" && e.Real != e.Path {
		text += " (really " + e.Real + ")"
	}
	text += " was given by a client of the API and is outside the folders that clients may use"
	if len(e.Roots) > 0 {
		text += " (" + strings.Join(e.Roots, ", ") + ")"
	}
	return text + "; to allow another folder, add it to api.paths"
}

// Is reports that such a path counts as missing: it was not examined.
func (e *OutsideError) Is(target error) bool { return target == fs.ErrPermission } //nolint:errorlint // as errors.Is asks

// New returns the files of an execution; nil for one without restrictions.
func New(c *core.Confinement) *Files {
	if c == nil {
		return nil
	}
	return &Files{confinement: c, roots: c.Roots, free: map[string]free{}}
}

// Of returns the context's files if they belong to the execution.
func Of(ctx context.Context, c *core.Confinement) *Files {
	if f := From(ctx); c != nil && f != nil && f.confinement == c {
		return f
	}
	return New(c)
}

type key struct{}

// With puts files into a context.
func With(ctx context.Context, f *Files) context.Context { return context.WithValue(ctx, key{}, f) }

// From returns the files that the context is confined to; nil means no restrictions.
func From(ctx context.Context) *Files {
	f, _ := ctx.Value(key{}).(*Files) //nolint:errcheck // absent is nil
	return f
}

// Confinement returns the execution's confinement, or nil.
func (f *Files) Confinement() *core.Confinement {
	if f == nil {
		return nil
	}
	return f.confinement
}

// Holds reports whether a client's value took part in an expression's variable, such as
// params.input.
func (f *Files) Holds(variable string) bool {
	if f == nil {
		return false
	}
	head, rest, _ := strings.Cut(variable, ".")
	switch head {
	case "params":
		return rest == "" || f.confinement.Holds(rest)
	case "context":
		return true
	case "steps": // the numbers of a step are not texts of the client, its results may be
		return strings.Contains(rest, ".out") || !strings.Contains(rest, ".")
	case "job":
		return rest == "" || rest == "error" || rest == "exit"
	}
	return false
}

// Free admits a path or a pattern of the job file itself.
func (f *Files) Free(path string) { f.admit(path, true) }

// FreeToRead is Free for reading only.
func (f *Files) FreeToRead(path string) { f.admit(path, false) }

func (f *Files) admit(path string, written bool) {
	if f == nil || path == "" {
		return
	}
	abs, err := urlpath.Abs(path)
	if err != nil {
		return
	}
	real, err := Real(abs)
	if err != nil {
		real = ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free[abs] = free{real, written || f.free[abs].written}
}

func (f *Files) isFree(abs, real string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for free, of := range f.free {
		if fits(free, abs) || strings.HasPrefix(abs, free+".part.") || isBelow(real, of.real) {
			return true
		}
		if isBelow(free, abs) {
			return true // an outer folder, which is made, locked or listed
		}
	}
	return false
}

func isBelow(path, folder string) bool {
	return path != "" && folder != "" && strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func folderOf(pattern string) (folder string, wild bool) {
	i := strings.IndexAny(pattern, `*?[\`)
	if i < 0 {
		return pattern, false
	}
	return filepath.Dir(pattern[:i] + "x"), true
}

// Check refuses a client's path, or a pattern by the folder before its wildcards, that leads out of
// the roots.
func (f *Files) Check(path string) error {
	if f == nil || path == "" {
		return nil
	}
	if path == core.StdPath {
		return f.outside(path, "")
	}
	if urlpath.Is(path) {
		return f.url(path)
	}
	folder, wild := folderOf(path)
	if wild {
		if _, err := os.Lstat(path); err != nil { // else the pattern is a name
			path = folder
		}
	}
	_, _, err := f.within(path)
	return err
}

func (f *Files) url(url string) error {
	if slices.ContainsFunc(f.roots, func(root string) bool { return urlpath.Is(root) && urlpath.Below(url, root) }) {
		return nil
	}
	return f.outside(url, "")
}

// URL refuses a URL that a client gave, and that is outside of the roots. One of the job file passes.
func (f *Files) URL(url string) error {
	if f == nil || f.isFree(url, "") {
		return nil
	}
	return f.url(url)
}

func (f *Files) outside(path, real string) error {
	return exception.Fatal("", &OutsideError{Path: path, Real: real, Roots: f.roots})
}

func (f *Files) within(path string) (root, name string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	real, err := Real(abs)
	if err != nil {
		return "", "", f.outside(abs, real)
	}
	for _, root := range f.roots {
		if (isSystem(real) || isSystem(abs)) && !isSystem(root) { // a root may be a folder of /dev/shm
			continue
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			return root, rel, nil
		}
	}
	return "", "", f.outside(abs, real)
}

func (f *Files) place(path string) (root, name string, err error) {
	root, name, err = f.within(path)
	if err == nil {
		return root, name, nil
	}
	abs, absErr := filepath.Abs(path)
	real, _ := Real(abs) //nolint:errcheck // it is not below any folder then
	if absErr == nil && f.isFree(abs, real) {
		return "", path, nil
	}
	return "", "", err
}

func isSystem(path string) bool {
	for _, folder := range []string{"/proc", "/sys", "/dev"} {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// Real resolves the links of an absolute path as far as it exists. The rest is appended as written.
func Real(abs string) (string, error) {
	if urlpath.Is(abs) {
		return abs, nil
	}
	real, err := filepath.EvalSymlinks(abs)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || abs == filepath.Dir(abs) {
		return real, err
	}
	if target, linked := os.Readlink(abs); linked == nil { // a link to a missing file
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(abs), target)
		}
		if target == abs {
			return "", err
		}
		parent, err := Real(filepath.Dir(target))
		return filepath.Join(parent, filepath.Base(target)), err
	}
	parent, err := Real(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}

func (f *Files) in(path string, free func(path string) error, act func(root *os.Root, name string) error) error {
	if f == nil {
		return free(path)
	}
	folder, name, err := f.place(path)
	if err != nil {
		return err
	}
	if folder == "" {
		return free(path)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it is only read
	err = act(root, name)
	var of *fs.PathError
	if errors.As(err, &of) { // as package os says it
		return &fs.PathError{Op: strings.TrimSuffix(of.Op, "at"), Path: path, Err: of.Err}
	}
	return err
}

// Open opens a file or a folder to read it.
func (f *Files) Open(path string) (*os.File, error) { return f.OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile.
func (f *Files) OpenFile(path string, flags int, mode fs.FileMode) (file *os.File, err error) {
	if flags&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		if err := f.written(path); err != nil {
			return nil, err
		}
	}
	err = f.in(path,
		func(path string) error { file, err = os.OpenFile(path, flags, mode); return err }, //nolint:gosec // the caller's
		func(root *os.Root, name string) error { file, err = root.OpenFile(name, flags, mode); return err })
	return file, err
}

// ReadFile is os.ReadFile.
func (f *Files) ReadFile(path string) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	return text, errors.Join(err, file.Close())
}

// ReadDir is os.ReadDir.
func (f *Files) ReadDir(path string) ([]fs.DirEntry, error) {
	d, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	list, err := d.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, errors.Join(err, d.Close())
}

// DirFS is os.DirFS.
func (f *Files) DirFS(dir string) fs.FS {
	if f == nil {
		return os.DirFS(dir)
	}
	return folder{f, dir}
}

type folder struct {
	files *Files
	dir   string
}

func (d folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return d.files.Open(filepath.Join(d.dir, filepath.FromSlash(name)))
}

// Chtimes is os.Chtimes.
func (f *Files) Chtimes(path string, atime, mtime time.Time) error {
	return f.in(path, func(path string) error { return os.Chtimes(path, atime, mtime) },
		func(root *os.Root, name string) error { return root.Chtimes(name, atime, mtime) })
}

// Stat is os.Stat.
func (f *Files) Stat(path string) (info fs.FileInfo, err error) {
	err = f.in(path,
		func(path string) error { info, err = os.Stat(path); return err },
		func(root *os.Root, name string) error { info, err = root.Stat(name); return err })
	return info, err
}

// Lstat is os.Lstat.
func (f *Files) Lstat(path string) (info fs.FileInfo, err error) {
	err = f.link(path,
		func(path string) error { info, err = os.Lstat(path); return err },
		func(root *os.Root, name string) error { info, err = root.Lstat(name); return err })
	return info, err
}

func (f *Files) link(path string, free func(path string) error, act func(root *os.Root, name string) error) error {
	if f == nil {
		return free(path)
	}
	if folder, _, err := f.place(path); err != nil {
		return err
	} else if folder == "" {
		return free(path)
	}
	base := filepath.Base(path)
	return f.in(filepath.Dir(path), func(dir string) error { return free(filepath.Join(dir, base)) },
		func(root *os.Root, dir string) error { return act(root, filepath.Join(dir, base)) })
}

// Remove is os.Remove.
func (f *Files) Remove(path string) error {
	if err := f.written(path); err != nil {
		return err
	}
	return f.link(path, os.Remove, func(root *os.Root, name string) error { return root.Remove(name) })
}

// Mkdir is os.Mkdir.
func (f *Files) Mkdir(path string, mode fs.FileMode) error {
	return f.in(path, func(path string) error { return os.Mkdir(path, mode) },
		func(root *os.Root, name string) error { return root.Mkdir(name, mode) })
}

// Rename is os.Rename. Both names must be below one root, unless one belongs to the job file.
func (f *Files) Rename(from, to string) error {
	return f.two("rename", from, to, os.Rename, (*os.Root).Rename)
}

// Link is os.Link.
func (f *Files) Link(from, to string) error { return f.two("link", from, to, os.Link, (*os.Root).Link) }

func (f *Files) two(op, from, to string, free func(from, to string) error, act func(root *os.Root, from, to string) error) error {
	if f == nil {
		return free(from, to)
	}
	for _, path := range []string{from, to} {
		if _, _, err := f.place(path); err != nil {
			return err
		}
	}
	if err := f.written(from, to); err != nil {
		return err
	}
	fromReal, toReal, err := f.names(from, to)
	if err != nil {
		return &os.LinkError{Op: op, Old: from, New: to, Err: err}
	}
	for _, folder := range f.roots {
		if !isBelow(fromReal, folder) || !isBelow(toReal, folder) {
			continue
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return err
		}
		defer root.Close() //nolint:errcheck,gocritic // it is only read, and the loop ends here
		return act(root, strings.TrimPrefix(fromReal[len(folder):], "/"), strings.TrimPrefix(toReal[len(folder):], "/"))
	}
	return free(fromReal, toReal)
}

func (f *Files) names(from, to string) (a, b string, err error) {
	for i, path := range []string{from, to} {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", "", err
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
		if err != nil {
			return "", "", err
		}
		if i == 0 {
			a = filepath.Join(dir, filepath.Base(abs))
		} else {
			b = filepath.Join(dir, filepath.Base(abs))
		}
	}
	return a, b, nil
}

// Roots returns the real folders of the given ones, without missing ones.
func Roots(folders ...string) []string {
	var roots []string
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		if urlpath.Is(folder) {
			roots = append(roots, folder)
			continue
		}
		abs, err := filepath.Abs(folder)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			roots = append(roots, real)
		}
	}
	return roots
}

// Refused reports whether the error refuses a client's path.
func Refused(err error) bool {
	var outside *OutsideError
	var program *ProgramError
	return errors.As(err, &outside) || errors.As(err, &program)
}
