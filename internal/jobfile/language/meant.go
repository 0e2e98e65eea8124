package language

import (
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

type level struct {
	name string
	keys reflect.Type
}

func levels() []level {
	return []level{
		{"`chunk` of a step", reflect.TypeFor[Chunk]()},
		{"the step, next to `chunk` or `tasklet`", reflect.TypeFor[Step]()},
		{"`transaction`", reflect.TypeFor[Transaction]()},
		{"`partition`", reflect.TypeFor[Partition]()},
		{"`tasks` of a step", reflect.TypeFor[Tasks]()},
		{"the top level of the file", reflect.TypeFor[Job]()},
		{"`schedule`", reflect.TypeFor[Schedule]()},
		{"`budget`", reflect.TypeFor[Budget]()},
	}
}

func otherNames(in reflect.Type) map[string][]string {
	switch in {
	case reflect.TypeFor[Job]():
		return map[string][]string{
			"job": {"name", "id"}, "flow": {"steps", "stages", "tasks", "jobs"},
			"parameters": {"params", "args", "arguments", "variables", "vars", "inputs"},
		}
	case reflect.TypeFor[Chunk]():
		return map[string][]string{
			"reader": {"source", "input", "read"}, "writer": {"sink", "output", "target", "write"},
			"processor": {"processors", "transform", "transforms", "process"},
			"size":      {"chunk_size", "batch_size", "commit_interval", "batch"},
		}
	case reflect.TypeFor[Split]():
		return map[string][]string{"parallel": {"workers", "concurrency"}, "branches": {"flows", "steps"}}
	case reflect.TypeFor[Decide]():
		return map[string][]string{"choose": {"cases", "choices", "options", "switch", "branches"}}
	case reflect.TypeFor[Step]():
		return map[string][]string{"tasklet": {"task", "run", "script", "command"}, "when": {"if", "condition"}, "listeners": {"listener"}}
	}
	if in == reflect.TypeFor[Field]() {
		return map[string][]string{
			"null_if": {"nulls", "null", "null_values", "na_values", "nullif"}, "default": {"fallback", "if_null"},
			"zone": {"timezone", "tz"}, "from": {"source", "column", "path", "header"}, "coerce": {"on_error", "invalid", "errors", "convert", "cast"},
		}
	}
	if _, ok := yamlfile.FieldsOf(in).Find("item"); ok {
		return map[string][]string{"item": {"columns", "fields", "schema", "types"}}
	}
	return nil
}

// MeantKey returns the key of in that was probably meant, or where the key belongs.
func MeantKey(key string, in reflect.Type) (own, hint string) {
	for name, others := range otherNames(in) {
		if _, has := yamlfile.FieldsOf(in).Find(name); has && slices.Contains(others, key) {
			return name, ""
		}
	}
	if in == reflect.TypeFor[Step]() && slices.Contains([]string{"depends_on", "needs", "requires", "after", "upstream"}, key) {
		return "", "a step runs after the one above it; `next` leads elsewhere, and `split` runs branches side by side"
	}
	if hint := meantDefault(key, in); hint != "" {
		return "", hint
	}
	if in != reflect.TypeFor[Chunk]() && slices.Contains([]string{"retries", "attempts", "max_retries", "max_attempts", "retry"}, key) && !HasKey(in, "next") && in != reflect.TypeFor[Tasks]() && in != reflect.TypeFor[Budget]() {
		return "", "`retry` belongs in the step, next to `tasklet`, or in `chunk`: retry: {limit: 3}"
	}
	if _, isElement := yamlfile.FieldsOf(in).Find("next"); isElement && in != reflect.TypeFor[Step]() {
		return "", "" // a key of a step has no meaning for the other elements
	}
	return "", belongs(key, in)
}

func meantDefault(key string, in reflect.Type) string {
	ofChunk, isDefault := HasKey(reflect.TypeFor[ChunkDefaults](), key), HasKey(reflect.TypeFor[Defaults](), key)
	switch {
	case in == reflect.TypeFor[Job]() && ofChunk:
		return key + " belongs in `chunk` of a step, or for all steps in `defaults: {chunk: ...}`"
	case in == reflect.TypeFor[Job]() && key == "transaction":
		return key + " belongs in a step, or for all steps in `defaults`"
	case in == reflect.TypeFor[Job]() && isDefault:
		return key + " belongs in `chunk` of a step, or for all steps in `defaults`"
	case in == reflect.TypeFor[Defaults]() && ofChunk:
		return key + " belongs in `chunk` of `defaults`"
	case in == reflect.TypeFor[ChunkDefaults]() && isDefault:
		return key + " belongs in `defaults` itself"
	case in == reflect.TypeFor[TransactionDefaults]() && HasKey(reflect.TypeFor[Transaction](), key):
		return key + " is said by each step itself"
	}
	return ""
}

func around(in reflect.Type) reflect.Type {
	switch in {
	case reflect.TypeFor[Schedule]():
		return reflect.TypeFor[Job]()
	case reflect.TypeFor[Budget]():
		return reflect.TypeFor[Tasks]()
	case reflect.TypeFor[Chunk](), reflect.TypeFor[Transaction](), reflect.TypeFor[Partition](), reflect.TypeFor[Tasks]():
		return reflect.TypeFor[Step]()
	}
	return nil
}

func belongs(key string, in reflect.Type) (hint string) {
	for _, l := range levels() {
		if l.keys == in || !HasKey(l.keys, key) {
			continue
		}
		if hint == "" || l.keys == around(in) {
			hint = key + " belongs in " + l.name
		}
	}
	return hint
}

// HasKey reports whether a struct of the language has the key.
func HasKey(t reflect.Type, key string) bool {
	_, ok := yamlfile.FieldsOf(t).Find(key)
	return ok
}

// HasKeyOf reports whether the node has a key of t that own lacks.
func HasKeyOf(n *yamlfile.Node, t, own reflect.Type) bool {
	return slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return HasKey(t, e.Key.Text) && !HasKey(own, e.Key.Text) })
}

// HasOtherName reports whether the node has another tool's name for the key.
func HasOtherName(n *yamlfile.Node, key string, in reflect.Type) bool {
	return slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return slices.Contains(otherNames(in)[key], e.Key.Text) })
}
