package parquet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

type shape uint8

const (
	shapeLeaf shape = iota
	shapeGroup
	shapeList
	shapeMap
)

// node is an element of the file's schema, as a tree. Lists and maps hide the groups by which parquet writes them.
type node struct {
	name     string
	shape    shape
	optional bool
	// level is the definition level at which the node is not null, entry the one at which a list or map has an entry,
	// and again the repetition level of a further entry.
	level, entry, again int
	children            []*node // an element, or key and value
	first, end          int     // leaves
	scalar              scalar
	unusable            error // the type has no place in an item
}

const maxDepth = 64

var errSchema = errors.New("the schema is broken")

type schemaReader struct {
	elements []format.SchemaElement
	leaves   int
}

// readSchema returns the columns of the file.
func readSchema(elements []format.SchemaElement) ([]*node, error) {
	r := &schemaReader{elements: elements}
	if len(elements) == 0 {
		return nil, errSchema
	}
	root := r.take()
	return r.children(root, 0, 0, 0)
}

func (r *schemaReader) take() format.SchemaElement {
	e := r.elements[0]
	r.elements = r.elements[1:]
	return e
}

func (r *schemaReader) children(of format.SchemaElement, level, again, depth int) ([]*node, error) {
	var list []*node
	for range of.NumChildren.V {
		if len(r.elements) == 0 || depth > maxDepth {
			return nil, errSchema
		}
		n, err := r.field(level, again, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func repetition(e format.SchemaElement) format.FieldRepetitionType { return e.RepetitionType.V }

func (r *schemaReader) field(level, again, depth int) (*node, error) {
	e := r.take()
	n := &node{name: e.Name, optional: repetition(e) == format.Optional, level: level, first: r.leaves}
	if repetition(e) == format.Repeated { // a list without a group of its own
		n.shape, n.entry, n.again = shapeList, level+1, again+1
		element, err := r.body(&node{name: e.Name, level: level + 1, first: r.leaves}, e, again+1, depth)
		n.children, n.end = []*node{element}, r.leaves
		return n, err
	}
	if n.optional {
		n.level++
	}
	return r.body(n, e, again, depth)
}

func (r *schemaReader) body(n *node, e format.SchemaElement, again, depth int) (*node, error) {
	if !e.NumChildren.Valid {
		n.scalar, n.unusable = scalarOf(e)
		r.leaves++
		n.end = r.leaves
		return n, nil
	}
	var err error
	n.shape = shapeGroup
	n.children, err = r.children(e, n.level, again, depth+1)
	n.end = r.leaves
	if err != nil || len(n.children) == 0 {
		return n, errors.Join(err, emptyGroup(n))
	}
	inner := n.children[0]
	switch annotation(e) {
	case deprecated.List:
		if len(n.children) == 1 && inner.shape == shapeList {
			n.shape, n.entry, n.again, n.children = shapeList, inner.entry, inner.again, inner.children
			n.unwrap()
		}
	case deprecated.Map, deprecated.MapKeyValue:
		if len(n.children) == 1 && inner.shape == shapeList && len(inner.children[0].children) == 2 {
			n.shape, n.entry, n.again, n.children = shapeMap, inner.entry, inner.again, inner.children[0].children
		}
	case variant:
		n.unusable = errors.New("it is VARIANT, for which an item has no type")
	default:
	}
	return n, nil
}

func emptyGroup(n *node) error {
	if len(n.children) == 0 {
		return fmt.Errorf("%w: group %s has no fields", errSchema, n.name)
	}
	return nil
}

// unwrap removes the group around an element, unless the group is the element, by the rules of the format for old files.
func (n *node) unwrap() {
	entry := n.children[0]
	if entry.shape == shapeGroup && len(entry.children) == 1 && entry.name != "array" && entry.name != n.name+"_tuple" {
		n.children = entry.children
	}
}

const variant = deprecated.ConvertedType(-1)

const plain = deprecated.ConvertedType(-2)

func annotation(e format.SchemaElement) deprecated.ConvertedType {
	switch e.LogicalType.Value.(type) {
	case *format.ListType:
		return deprecated.List
	case *format.MapType:
		return deprecated.Map
	case *format.VariantType:
		return variant
	}
	if e.ConvertedType.Valid {
		return e.ConvertedType.V
	}
	return plain
}

// find returns the column of that name, or the field at a path through groups.
func find(columns []*node, path string) *node {
	for _, n := range columns {
		if n.name == path {
			return n
		}
	}
	for _, n := range columns {
		if rest, is := strings.CutPrefix(path, n.name+"."); is && n.shape == shapeGroup {
			if found := find(n.children, rest); found != nil {
				return found
			}
		}
	}
	return nil
}

// broken returns why the node cannot be read, if one of its leaves cannot.
func (n *node) broken() error {
	if n.unusable != nil {
		return n.unusable
	}
	for _, c := range n.children {
		if err := c.broken(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if n.shape == shapeMap && n.children[0].shape != shapeLeaf {
		return errors.New("the keys of a map are not simple values")
	}
	return nil
}

func (n *node) describe() string {
	switch n.shape {
	case shapeGroup:
		return "a struct"
	case shapeList:
		return "a list"
	case shapeMap:
		return "a map"
	case shapeLeaf:
	}
	return n.scalar.name
}
