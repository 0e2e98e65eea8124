package jobfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// sourceText is the origin of a job file's text. The zero one says nothing.
type sourceText struct {
	path string // in messages, too
	// fsys holds path and the files of child jobs; nil means the disk.
	fsys fs.FS
	// text is the file itself, if inMemory.
	text     string
	inMemory bool
	// made means that Go code has made the text.
	made bool
	// stored is the definition of an execution, with the texts of all files; nil means that they are read
	// from their location.
	stored *core.Definition
	// name is the name of a file in stored; empty means the job file itself.
	name string
}

// pathSource is a job file on the disk. Relative paths in it are relative to its folder.
func pathSource(path string) sourceText { return sourceText{path: path} }

// fsSource is a job file in a file system, such as an embed.FS. path is slash-separated, as fs.ValidPath requires.
// The files of its child jobs are in the same file system, relative to the job file; data paths are on the
// disk, relative to the working directory.
func fsSource(fsys fs.FS, path string) sourceText { return sourceText{path: path, fsys: fsys} }

// bytesSource is the text of a job file. name is its name in messages. Relative paths in it are relative to the
// working directory.
func bytesSource(name string, text []byte) sourceText {
	return sourceText{path: name, text: string(text), inMemory: true}
}

// madeSource is the job of that name among the texts of job files, by the names of their jobs, that Go code has
// made of definitions (package define). A job names the files of its child jobs by their names. Messages
// about it name the step and the key, not the line.
func madeSource(name string, texts map[string]string) sourceText {
	return sourceText{path: name, fsys: texted(texts), made: true}
}

// storedSource is the job file of an execution from its history, with all files that it names: no file is read.
// name is the name in messages of a job file that was not on the disk. Relative data paths begin at the
// original folders of the files, or at the working directory.
func storedSource(d core.Definition, name string) sourceText {
	if d.Path == "" {
		return bytesSource(name, nil).asStored(d)
	}
	return pathSource(d.Path).asStored(d)
}

func (s sourceText) asStored(d core.Definition) sourceText {
	s.stored, s.name = &d, ""
	return s
}

// isMade reports whether Go code has made the text.
func (s sourceText) isMade() bool { return s.made }

// original is the source with the texts of its location instead of an execution's.
func (s sourceText) original() sourceText {
	s.stored = nil
	return s
}

// String returns the path or the name.
func (s sourceText) String() string { return s.path }

// isZero reports a Source that says nothing.
func (s sourceText) isZero() bool { return s.path == "" && s.onDisk() }

// onDisk reports whether the text can be read again from the disk, at String.
func (s sourceText) onDisk() bool { return s.fsys == nil && !s.inMemory }

// neighbour suggests, for a missing job file, the one in its folder with the nearest name, without its
// suffix.
func (s sourceText) neighbour(err error) string {
	if !s.onDisk() || !errors.Is(err, fs.ErrNotExist) {
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

func (s sourceText) read() ([]byte, error) {
	switch {
	case s.stored != nil:
		return []byte(s.storedText()), nil
	case s.isZero():
		return nil, errors.New("no file is named")
	case s.inMemory:
		return []byte(s.text), smallfile.Check([]byte(s.text), s.path)
	case s.fsys != nil:
		return smallfile.ReadFS(s.fsys, s.path)
	}
	return smallfile.Read(s.path)
}

func (s sourceText) storedText() string {
	if s.name == "" {
		return s.stored.Text
	}
	f, _ := s.stored.File(s.name) // child looked for it
	return f.Text
}

// dir is the folder for relative data paths.
func (s sourceText) dir() string {
	if s.onDisk() {
		return filepath.Dir(s.path)
	}
	return ""
}

// child is the job file that this one names.
func (s sourceText) child(name string) (sourceText, error) {
	if s.stored != nil {
		return s.storedChild(name)
	}
	if s.fsys == nil {
		return pathSource(resolve(s.dir(), name)), nil
	}
	child := path.Join(path.Dir(s.path), name)
	if path.IsAbs(name) || !fs.ValidPath(child) {
		return sourceText{}, fmt.Errorf("%s is not in the file system of this job file", name)
	}
	return sourceText{path: child, fsys: s.fsys, made: s.made}, nil
}

func (s sourceText) storedChild(name string) (sourceText, error) {
	name = nameFrom(s.name, name)
	f, ok := s.stored.File(name)
	if !ok {
		return sourceText{}, fmt.Errorf("%s is not stored with the execution", name)
	}
	if f.Path != "" {
		return sourceText{path: f.Path, stored: s.stored, name: name}, nil
	}
	return sourceText{path: name, inMemory: true, made: s.made, stored: s.stored, name: name}, nil
}

// nameFrom is the name of a file that another one names, as the job file itself would name it. from is the
// name of the other file; empty means the job file.
func nameFrom(from, name string) string {
	if filepath.IsAbs(name) {
		return filepath.ToSlash(filepath.Clean(name))
	}
	return path.Join(path.Dir(from), filepath.ToSlash(name))
}

// identity distinguishes the files that are loaded together.
func (s sourceText) identity() string {
	if s.stored != nil {
		return "stored/" + s.name
	}
	if !s.onDisk() {
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

// folder is the folder of location; empty for a file that is not on the disk.
func (s sourceText) folder() string {
	if at := s.location(); at != "" {
		return filepath.Dir(at)
	}
	return ""
}

// location is the absolute path of a file on the disk; empty for any other.
func (s sourceText) location() string {
	if !s.onDisk() {
		return ""
	}
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return ""
	}
	return abs
}
