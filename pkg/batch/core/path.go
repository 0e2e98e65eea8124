package core

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/internal/urlpath"
)

// StdPath is standard input or output, relative to no folder. A file of that name is ./-.
const StdPath = "-"

// PathText names the path from anywhere (rule L1a): relative to folder (empty: the working directory) with
// slashes if inside, else absolute. Cleaned; no link is resolved; empty stays. A URL of a place stays, and
// another one is an error: cleaned, it would be a folder.
func PathText(folder, path string) (string, error) {
	if path == "" || path == StdPath {
		return path, nil
	}
	if urlpath.Is(path) {
		return urlpath.Text(path)
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

// A folder reached by a link counts too.
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

func joined(folder, path string) string {
	if path == StdPath || urlpath.Is(path) {
		return path
	}
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}

// Without a folder paths are absolute: a restart may begin elsewhere.
func (p Parameter) place(folder string) (Parameter, error) {
	text, is := p.Value.(string)
	if p.Type != TypePath || !is || text == "" {
		return p, nil
	}
	if urlpath.Is(text) {
		url, err := urlpath.Text(text)
		if err != nil {
			return p, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		p.Value, p.Path = url, url
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

// Place gives a value its stored text (rule L1a).
func (s ParameterSpec) Place(value any) (Parameter, error) {
	p := Parameter{Name: s.Name, Type: s.Type, Value: value, Identifying: s.Identifying}
	return p.place(s.Folder)
}

// In sets the Path of stored paths, of a job file in folder; values stay. A relative path has none without a
// folder.
func (ps Parameters) In(folder string) Parameters {
	list := slices.Clone(ps.list)
	for i, p := range list {
		text, is := p.Value.(string)
		if p.Type == TypePath && is && text != "" && (folder != "" || filepath.IsAbs(text) || urlpath.Is(text)) {
			list[i].Path = joined(folder, text)
		}
	}
	return Parameters{list: list}
}
