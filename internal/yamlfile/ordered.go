package yamlfile

import "reflect"

// Named is one entry of an OrderedMap.
type Named[T any] struct {
	Name  string
	Key   *Node
	Value T
}

// OrderedMap is a map of the file that keeps the order of its keys.
type OrderedMap[T any] []Named[T]

// Elem is the type of the values.
func (OrderedMap[T]) Elem() reflect.Type { return reflect.TypeFor[T]() }

func (*OrderedMap[T]) element() reflect.Type { return reflect.TypeFor[T]() }

func (m *OrderedMap[T]) add(key *Node, value reflect.Value) {
	*m = append(*m, Named[T]{Name: key.Text, Key: key, Value: *value.Addr().Interface().(*T)})
}

// Names returns the keys, in order.
func (m OrderedMap[T]) Names() []string {
	names := make([]string, len(m))
	for i, e := range m {
		names[i] = e.Name
	}
	return names
}
