package parquet

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// nested assembles the value of a struct, list or map from its leaves.
type nested struct {
	leaves []*leaf // by the number of the leaf
	zone   *time.Location
}

var errLevels = errors.New("the leaves of a column do not fit together")

func (a nested) peek(n *node) pq.Value {
	l := a.leaves[n.first]
	if l.at >= len(l.row) {
		panic(errLevels) // recovered where the library's panics are
	}
	return l.row[l.at]
}

func (a nested) isNull(n *node) bool {
	if a.peek(n).DefinitionLevel() >= n.level {
		return false
	}
	a.skip(n)
	return true
}

// skip passes a null: each leaf has one value for it.
func (a nested) skip(n *node) {
	for _, l := range a.leaves[n.first:n.end] {
		l.at++
	}
}

// entries calls each for every entry of a list or map.
func (a nested) entries(n *node, each func() error) error {
	if a.peek(n).DefinitionLevel() < n.entry {
		a.skip(n)
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		l := a.leaves[n.first]
		if l.at >= len(l.row) || l.row[l.at].RepetitionLevel() != n.again {
			return nil
		}
	}
}

func (a nested) simple(n *node) (row.Value, error) {
	if a.isNull(n) {
		return row.Value{}, nil
	}
	v := a.peek(n)
	a.skip(n)
	return n.scalar.value(v, a.zone)
}

// list returns the value of a list of simple elements.
func (a nested) list(n *node, fit func(v row.Value) (row.Value, error)) (list []row.Value, null bool, err error) {
	if a.isNull(n) {
		return nil, true, nil
	}
	err = a.entries(n, func() error {
		v, err := a.simple(n.children[0])
		if err == nil {
			v, err = fit(v)
		}
		if err != nil {
			return &row.ElementError{Index: len(list), Err: err}
		}
		list = append(list, v)
		return nil
	})
	return list, false, err
}

func (a nested) appendJSON(dst []byte, n *node) ([]byte, error) {
	if a.isNull(n) {
		return append(dst, "null"...), nil
	}
	first := true
	next := func(open byte) {
		if !first {
			open = ','
		}
		dst, first = append(dst, open), false
	}
	var err error
	switch n.shape {
	case shapeLeaf:
		return a.appendLeaf(dst, n)
	case shapeGroup:
		for _, c := range n.children {
			next('{')
			dst = append(appendText(dst, c.name), ':')
			if dst, err = a.appendJSON(dst, c); err != nil {
				return dst, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		return append(dst, '}'), nil
	case shapeList:
		err = a.entries(n, func() (err error) {
			next('[')
			dst, err = a.appendJSON(dst, n.children[0])
			return err
		})
		return ended(dst, first, '[', ']'), err
	case shapeMap:
		known := map[string]bool{}
		err = a.entries(n, func() error {
			next('{')
			key, err := a.simple(n.children[0])
			if err != nil {
				return err
			}
			text := key.String()
			if key.IsNull() || known[text] {
				return fmt.Errorf("the map has the key %q twice, or a null key", text)
			}
			known[text] = true
			dst = append(appendText(dst, text), ':')
			dst, err = a.appendJSON(dst, n.children[1])
			return err
		})
		return ended(dst, first, '{', '}'), err
	}
	return dst, nil
}

func ended(dst []byte, empty bool, open, end byte) []byte {
	if empty {
		dst = append(dst, open)
	}
	return append(dst, end)
}

func (a nested) appendLeaf(dst []byte, n *node) ([]byte, error) {
	v, err := n.scalar.value(a.peek(n), a.zone)
	a.skip(n)
	if err == nil {
		err = v.Finite()
	}
	if err != nil {
		return dst, err
	}
	switch v.Kind() {
	case row.Int, row.Float, row.DecimalKind, row.Bool, row.JSONKind:
		return v.AppendText(dst), nil
	case row.BytesKind:
		return appendText(dst, base64.StdEncoding.EncodeToString([]byte(v.Bytes()))), nil
	default:
		return appendText(dst, v.String()), nil
	}
}

func appendText(dst []byte, text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) //nolint:errcheck // a text always has JSON
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
