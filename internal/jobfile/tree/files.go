package tree

import (
	"path/filepath"
	"reflect"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A file that a writer writes belongs to that writer alone (rule C15b). The part of this rule that is visible
// in the file is checked at load, the rest when a step starts and when partitions are planned.

// FileUse is a key of a component that names a file.
type FileUse struct {
	Use   *ComponentUse
	field yamlfile.Field
	Node  *yamlfile.Node
}

// Files are the keys of the component that name files to read, or, for a writer, to write: those with the tag
// `output`.
func (u *ComponentUse) Files() []FileUse {
	if u == nil || u.Component.Config == nil {
		return nil
	}
	var list []FileUse
	for _, f := range yamlfile.FieldsOf(u.Component.Config).Fields {
		if f.Type.Kind() != reflect.String || !f.Path || f.Key == u.Given || u.Kind == registry.KindWriter && !f.Output {
			continue
		}
		at := u.Node.Get(f.Key)
		if f.Main && u.Node.Kind == yamlfile.Scalar {
			at = u.Node
		}
		if at != nil && at.Kind == yamlfile.Scalar {
			list = append(list, FileUse{Use: u, field: f, Node: at})
		}
	}
	return list
}

// IsStd reports whether the path is the standard input or output.
func (f FileUse) IsStd(text string) bool { return f.field.Std && text == core.StdPath }

// Std describes the standard input or output in messages.
func (f FileUse) Std() string {
	if f.Use.Kind == registry.KindReader {
		return "the standard input"
	}
	return "the standard output"
}

// Path is the path in the key of a bound config. Links in the folder are resolved, so that one file has one
// path.
func (f FileUse) Path(cfg any) string {
	text := reflect.ValueOf(cfg).Elem().FieldByIndex(f.field.Index).String()
	if f.IsStd(text) {
		return f.Std()
	}
	abs, err := filepath.Abs(text)
	if err != nil {
		return text
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	if f.Use.Kind == registry.KindReader {
		if target, err := filepath.EvalSymlinks(abs); err == nil {
			return target
		}
	}
	return abs
}

// AnyKey takes every key of a config.
func AnyKey(yamlfile.Field) bool { return true }

// IsTarget reports whether a key of a writer names its target: the main key of the short form, such as the
// path or the table, the database, and nested writers.
func IsTarget(f yamlfile.Field) bool { return f.Main || f.Key == "database" || holdsNested(f.Type) }

// IsTargetOrMode is IsTarget for a writer that refills its target in one of its definitions (rule TW4): its
// committed rows are elsewhere, or would be removed.
func IsTargetOrMode(f yamlfile.Field) bool { return IsTarget(f) || f.Key == "mode" }

// holdsNested reports whether a field of a config has components inside.
func holdsNested(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t == reflect.TypeFor[registry.Nested]() {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range yamlfile.FieldsOf(t).Fields {
		if holdsNested(f.Type) {
			return true
		}
	}
	return false
}
