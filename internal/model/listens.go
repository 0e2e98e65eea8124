package model

import (
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Listens reports whether t implements an interface above.
func Listens(t reflect.Type) bool {
	for _, callback := range listenerTypes() {
		if t.Implements(callback) {
			return true
		}
	}
	return false
}

func listenerTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[core.BeforeChunk](), reflect.TypeFor[core.AfterChunk](), reflect.TypeFor[core.OnChunkError](),
		reflect.TypeFor[core.BeforeRead](), reflect.TypeFor[core.AfterRead](), reflect.TypeFor[core.OnReadError](),
		reflect.TypeFor[core.BeforeProcess](), reflect.TypeFor[core.AfterProcess](), reflect.TypeFor[core.OnProcessError](),
		reflect.TypeFor[core.BeforeWrite](), reflect.TypeFor[core.AfterWrite](), reflect.TypeFor[core.OnWriteError](),
		reflect.TypeFor[core.OnSkipRead](), reflect.TypeFor[core.OnSkipProcess](), reflect.TypeFor[core.OnSkipWrite](),
		reflect.TypeFor[core.BeforeRetry](),
		reflect.TypeFor[core.BeforeStep](), reflect.TypeFor[core.AfterStep](),
		reflect.TypeFor[core.BeforeJob](), reflect.TypeFor[core.AfterJob](),
	}
}
