package core

import "reflect"

// Listens reports whether values of type t can be listeners: whether t implements
// any interface of listener.go.
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
		reflect.TypeFor[BeforeChunk](), reflect.TypeFor[AfterChunk](), reflect.TypeFor[OnChunkError](),
		reflect.TypeFor[BeforeRead](), reflect.TypeFor[AfterRead](), reflect.TypeFor[OnReadError](),
		reflect.TypeFor[BeforeProcess](), reflect.TypeFor[AfterProcess](), reflect.TypeFor[OnProcessError](),
		reflect.TypeFor[BeforeWrite](), reflect.TypeFor[AfterWrite](), reflect.TypeFor[OnWriteError](),
		reflect.TypeFor[OnSkipRead](), reflect.TypeFor[OnSkipProcess](), reflect.TypeFor[OnSkipWrite](),
		reflect.TypeFor[BeforeRetry](),
		reflect.TypeFor[BeforeStep](), reflect.TypeFor[AfterStep](),
		reflect.TypeFor[BeforeJob](), reflect.TypeFor[AfterJob](),
	}
}
