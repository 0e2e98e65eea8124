package model

import (
	"reflect"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

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
