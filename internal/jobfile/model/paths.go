package model

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// A path in the file begins at the folder of the file (rule L1a). Components, and messages, get it relative
// to the working directory; expressions get it absolute.

// Resolve returns a path of the file relative to the working directory.
func (f *File) Resolve(text string) string { return source.Resolve(f.From.Dir(), text) }

func (f *File) Absolute(text string) string {
	text = source.Resolve(f.Folder, text)
	if abs, err := filepath.Abs(text); err == nil && text != "" {
		return abs
	}
	return text
}

// Named returns an absolute path in the folder of the file as resolve would.
func (f *File) Named(path string) string {
	if f.Folder == "" || !filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(f.Folder, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(f.From.Dir(), rel)
}

// DeclarePath turns a string parameter that is a whole path into a parameter of type path, so that its
// spelling does not matter. One with a pattern or an enum keeps its text: the author lists the allowed texts.
func (f *File) DeclarePath(expression string) {
	name, is := strings.CutPrefix(strings.TrimSpace(expression), "params.")
	i := slices.IndexFunc(f.Specs, func(spec core.ParameterSpec) bool { return is && spec.Name == name })
	if i < 0 || f.Specs[i].Type != core.TypeString || f.Specs[i].Pattern != "" || len(f.Specs[i].Enum) > 0 {
		return
	}
	f.Specs[i].Type, f.Specs[i].Folder = core.TypePath, f.Folder
}
