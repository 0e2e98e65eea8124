package core

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// StdPath is the path of the standard input or output, for components that accept it: it is not a file,
// and is relative to no folder. A file of that name is written ./-.
const StdPath = "-"

// PathText returns a text that names the path from any location (rule L1a): relative to folder, with
// slashes, if it is inside it, otherwise absolute. A relative path begins at folder; an empty folder is
// the working directory. The text is cleaned, and no link is resolved. An empty path stays empty.
func PathText(folder, path string) (string, error) {
	if path == "" || path == StdPath {
		return path, nil
	}
	base, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("path %s: %w", path, err)
	}
	abs := joined(base, path)
	if rel, ok := inside(base, abs); ok && rel == StdPath {
		return "./" + rel, nil
	} else if ok {
		return filepath.ToSlash(rel), nil
	}
	return abs, nil
}

// inside returns path relative to folder if it is inside it. The folder may have been reached by a
// link: an identical folder around path counts too.
func inside(folder, path string) (rel string, ok bool) {
	if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
		return rel, true
	}
	own, err := os.Stat(folder)
	if err != nil {
		return "", false
	}
	for around := filepath.Dir(path); ; around = filepath.Dir(around) {
		if found, err := os.Stat(around); err == nil && os.SameFile(own, found) {
			rel, err := filepath.Rel(around, path)
			return rel, err == nil
		}
		if around == filepath.Dir(around) {
			return "", false
		}
	}
}

// joined returns path, starting at folder if it is relative.
func joined(folder, path string) string {
	if path == StdPath {
		return path
	}
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}

// place gives a path its stored text and its Path. A job without a folder stores absolute paths: a
// restart may begin in another working directory.
func (p Parameter) place(folder string) (Parameter, error) {
	text, is := p.Value.(string)
	if p.Type != TypePath || !is || text == "" {
		return p, nil
	}
	base, err := filepath.Abs(folder)
	if err != nil {
		return p, fmt.Errorf("parameter %s: %w", p.Name, err)
	}
	p.Path = joined(base, text)
	if p.Value = p.Path; folder != "" {
		p.Value, err = PathText(base, text)
	}
	return p, err
}

// Place returns a value of the declared parameter with its stored text (rule L1a).
func (s ParameterSpec) Place(value any) (Parameter, error) {
	p := Parameter{Name: s.Name, Type: s.Type, Value: value, Identifying: s.Identifying}
	return p.place(s.Folder)
}

// In returns parameters that were stored by a job with its file in folder, with the Path of each path.
// Their values stay. A relative path has none if the folder is unknown.
func (ps Parameters) In(folder string) Parameters {
	list := slices.Clone(ps.list)
	for i, p := range list {
		text, is := p.Value.(string)
		if p.Type == TypePath && is && text != "" && (folder != "" || filepath.IsAbs(text)) {
			list[i].Path = joined(folder, text)
		}
	}
	return Parameters{list: list}
}
