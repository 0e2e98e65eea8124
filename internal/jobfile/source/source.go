package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Source is the origin of a job file's text. The zero one says nothing.
type Source struct {
	path     string // in messages, too
	fsys     fs.FS
	text     string
	inMemory bool
	made     bool
	stored   *core.Definition
	name     string
}

// Path is a file on the disk.
func Path(path string) Source { return Source{path: path} }

// FS is a file in a file system.
func FS(fsys fs.FS, path string) Source { return Source{path: path, fsys: fsys} }

// Bytes is a text in memory.
func Bytes(name string, text []byte) Source {
	return Source{path: name, text: string(text), inMemory: true}
}

// Made is one of the texts that Go code has made.
func Made(name string, texts map[string]string) Source {
	return Source{path: name, fsys: texted(texts), made: true}
}

// Stored is the job file of an execution, from the history.
func Stored(d core.Definition, name string) Source {
	if d.Path == "" {
		return Bytes(name, nil).StoredAs(d)
	}
	return Path(d.Path).StoredAs(d)
}

// StoredAs is the source with the texts of an execution.
func (s Source) StoredAs(d core.Definition) Source {
	s.stored, s.name = &d, ""
	return s
}

// IsMade reports whether Go code has made the text.
func (s Source) IsMade() bool { return s.made }

// Original is the source with the texts of its location.
func (s Source) Original() Source {
	s.stored = nil
	return s
}

// String returns the path or the name.
func (s Source) String() string { return s.path }

// IsZero reports a Source that says nothing.
func (s Source) IsZero() bool { return s.path == "" && s.OnDisk() }

// OnDisk reports whether the text can be read again from the disk, at String.
func (s Source) OnDisk() bool { return s.fsys == nil && !s.inMemory }

func (s Source) Read() ([]byte, error) {
	switch {
	case s.stored != nil:
		return []byte(s.storedText()), nil
	case s.IsZero():
		return nil, errors.New("no file is named")
	case s.inMemory:
		return []byte(s.text), smallfile.Check([]byte(s.text), s.path)
	case s.fsys != nil:
		return smallfile.ReadFS(s.fsys, s.path)
	}
	return smallfile.Read(s.path)
}

func (s Source) storedText() string {
	if s.name == "" {
		return s.stored.Text
	}
	f, _ := s.stored.File(s.name) // child looked for it
	return f.Text
}

// Neighbour suggests the file with the nearest name for a missing job file.
func (s Source) Neighbour(err error) string {
	if !s.OnDisk() || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	files, names := map[string]string{}, []string{}
	for _, suffix := range []string{".yml", ".yaml"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(s.path), "*"+suffix))
		if err != nil {
			return "" // the folder's name is a pattern
		}
		for _, path := range found {
			name := strings.TrimSuffix(filepath.Base(path), suffix)
			files[name], names = filepath.Base(path), append(names, name)
		}
	}
	wanted := filepath.Base(s.path)
	if near := nearest.Name(strings.TrimSuffix(wanted, filepath.Ext(wanted)), names); near != "" {
		return fmt.Sprintf(" (nearest: %s)", files[near])
	}
	return ""
}

// Child is the job file that this one names.
func (s Source) Child(name string) (Source, error) {
	if s.stored != nil {
		return s.storedChild(name)
	}
	if s.fsys == nil {
		return Path(Resolve(s.Dir(), name)), nil
	}
	child := path.Join(path.Dir(s.path), name)
	if path.IsAbs(name) || !fs.ValidPath(child) {
		return Source{}, fmt.Errorf("%s is not in the file system of this job file", name)
	}
	return Source{path: child, fsys: s.fsys, made: s.made}, nil
}

func (s Source) storedChild(name string) (Source, error) {
	name = NameFrom(s.name, name)
	f, ok := s.stored.File(name)
	if !ok {
		return Source{}, fmt.Errorf("%s is not stored with the execution", name)
	}
	if f.Path != "" {
		return Source{path: f.Path, stored: s.stored, name: name}, nil
	}
	return Source{path: name, inMemory: true, made: s.made, stored: s.stored, name: name}, nil
}

// NameFrom is the name, as the job file would write it, of a file named in from; empty means the
// job file.
func NameFrom(from, name string) string {
	if filepath.IsAbs(name) {
		return filepath.ToSlash(filepath.Clean(name))
	}
	return path.Join(path.Dir(from), filepath.ToSlash(name))
}

// Identity distinguishes the files that are loaded together.
func (s Source) Identity() string {
	if s.stored != nil {
		return "stored/" + s.name
	}
	if !s.OnDisk() {
		return "in memory/" + s.path
	}
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return s.path
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

// Dir is the folder for relative data paths.
func (s Source) Dir() string {
	if s.OnDisk() {
		return filepath.Dir(s.path)
	}
	return ""
}

// Folder is the folder of the file; empty if not on the disk.
func (s Source) Folder() string {
	if at := s.Location(); at != "" {
		return filepath.Dir(at)
	}
	return ""
}

// Location is the absolute path of a file on the disk; empty for any other.
func (s Source) Location() string {
	if !s.OnDisk() {
		return ""
	}
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return ""
	}
	return abs
}

// Resolve returns a path that is relative to a folder.
func Resolve(dir, text string) string {
	if text == "" || filepath.IsAbs(text) || urlpath.Is(text) {
		return text
	}
	return filepath.Join(dir, filepath.FromSlash(text))
}

// Included is a file that the job file includes, directly or through another one.
type Included struct {
	Name string
	From Source
	Doc  *yamlfile.Document
}

// Circle names the chain's files from identity id on; "" if not in the chain.
func Circle(chain []string, id string) string {
	at := slices.Index(chain, id)
	if at < 0 {
		return ""
	}
	var names []string
	for _, file := range append(slices.Clone(chain[at:]), id) {
		names = append(names, filepath.Base(file))
	}
	return strings.Join(names, " -> ")
}

// Reason is the cause of a failed Read, without the path.
func Reason(err error) error {
	if pathErr, is := errors.AsType[*fs.PathError](err); is {
		return pathErr.Err
	}
	return err
}

type texted map[string]string

func (t texted) Open(name string) (fs.File, error) {
	text, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &textFile{strings.NewReader(text), name}, nil
}

type textFile struct {
	*strings.Reader
	name string
}

func (f *textFile) Stat() (fs.FileInfo, error) { return textInfo{f.name, f.Size()}, nil }

func (f *textFile) Close() error { return nil }

type textInfo struct {
	name string
	size int64
}

func (i textInfo) Name() string { return i.name }

func (i textInfo) Size() int64 { return i.size }

func (i textInfo) Mode() fs.FileMode { return 0o444 }

func (i textInfo) ModTime() time.Time { return time.Time{} }

func (i textInfo) IsDir() bool { return false }

func (i textInfo) Sys() any { return nil }
