package expression

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func itemScope(env registry.ExpressionEnv, in item.Type) (node, error) {
	top := branch{"meta": &twig{node: metaScope()}}
	if in != nil {
		item, err := itemFields(in)
		if err != nil {
			return node{}, err
		}
		top["item"] = &twig{node: item}
	}
	for _, path := range sortedNames(env.Types) {
		for _, name := range sortedNames(env.Types[path]) {
			n, err := launchValue(env, path, name)
			if err != nil {
				return node{}, err
			}
			if err := top.put(append(strings.Split(path, "."), name), n); err != nil {
				return node{}, fmt.Errorf("%s.%s: %w", path, name, err)
			}
		}
	}
	return top.namespace(), nil
}

type branch map[string]*twig

type twig struct {
	node
	below branch // nil means the node
}

func (b branch) put(path []string, n node) error {
	if len(path) == 1 {
		if b[path[0]] != nil {
			return fmt.Errorf("the name %s is already used", path[0])
		}
		b[path[0]] = &twig{node: n}
		return nil
	}
	next := b[path[0]]
	if next == nil {
		next = &twig{below: branch{}}
		b[path[0]] = next
	}
	if next.below == nil {
		return fmt.Errorf("the name %s is already used", path[0])
	}
	return next.below.put(path[1:], n)
}

func (b branch) namespace() node {
	fields := map[string]node{}
	for name, t := range b {
		fields[name] = t.node
		if t.below != nil {
			fields[name] = t.below.namespace()
		}
	}
	return namespace(fields)
}

func launchValue(env registry.ExpressionEnv, path, name string) (node, error) {
	t, full := env.Types[path][name], path+"."+name
	kind, nullable := kindOf(t)
	if env.Values == nil || kind == kindOpaque {
		n := leaf(kind, nullable, full, neverBound(full))
		n.value.opaque = t
		return n, nil
	}
	v, err := fromGo(env.Values[path][name], kind)
	if err != nil {
		return node{}, fmt.Errorf("%s: %w", full, err)
	}
	if v.IsNull() && !nullable {
		return node{}, fmt.Errorf("%s has no value", full)
	}
	return constantLeaf(kind, nullable, full, v), nil
}

func neverBound(path string) func(at int) evalFn {
	return func(at int) evalFn {
		return func(*Frame) (row.Value, error) {
			return row.Value{}, failf(at, "%s has no value before the launch", path)
		}
	}
}
