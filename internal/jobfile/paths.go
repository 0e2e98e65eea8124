package jobfile

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// A path in the file begins at the folder of the file (rule L1a). Components, and messages, get it relative
// to the working directory; expressions get it absolute.

// resolve returns a path of the file relative to the working directory.
func (f *fileDef) resolve(text string) string { return resolve(f.from.dir(), text) }

func resolve(dir, text string) string {
	if text == "" || filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(dir, filepath.FromSlash(text))
}

func (f *fileDef) absolute(text string) string {
	text = resolve(f.folder, text)
	if abs, err := filepath.Abs(text); err == nil && text != "" {
		return abs
	}
	return text
}

// named returns an absolute path in the folder of the file as resolve would.
func (f *fileDef) named(path string) string {
	if f.folder == "" || !filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(f.folder, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(f.from.dir(), rel)
}

// declarePath turns a string parameter that is a whole path into a parameter of type path, so that its
// spelling does not matter. One with a pattern or an enum keeps its text: the author lists the allowed texts.
func (f *fileDef) declarePath(expression string) {
	name, is := strings.CutPrefix(strings.TrimSpace(expression), "params.")
	i := slices.IndexFunc(f.specs, func(spec core.ParameterSpec) bool { return is && spec.Name == name })
	if i < 0 || f.specs[i].Type != core.TypeString || f.specs[i].Pattern != "" || len(f.specs[i].Enum) > 0 {
		return
	}
	f.specs[i].Type, f.specs[i].Folder = core.TypePath, f.folder
}
