package parquet

import (
	"errors"
	"fmt"
	"slices"

	pq "github.com/parquet-go/parquet-go"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// column is a column of the file that a field takes.
type column struct {
	field *row.Field
	node  *node
	// read assembles a value that is not simple; nil of a simple one.
	read func(from nested) (row.Value, error)
}

// bind finds the column of each field, and refuses a type that the field cannot hold.
func bind(schema *row.Schema, of []*node) ([]*column, error) {
	list := make([]*column, schema.Len())
	var errs []error
	for i := range list {
		f := schema.Field(i)
		n := find(of, f.Source())
		switch {
		case n == nil && f.Optional:
			continue
		case n == nil:
			errs = append(errs, unknownColumn(f, of))
			continue
		}
		c, err := newColumn(f, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", f.Source(), err))
		}
		list[i] = c
	}
	return list, errors.Join(errs...)
}

func newColumn(f *row.Field, n *node) (*column, error) {
	if err := n.broken(); err != nil {
		return nil, err
	}
	c := &column{field: f, node: n}
	elem, isList := f.Kind.Elem()
	switch {
	case n.shape == shapeLeaf:
		if !fits(n.scalar.kind, f) {
			return nil, unfitting(n, f, n.scalar.kind)
		}
		return c, nil
	case f.Kind == row.JSONKind:
		c.read = c.document
		return c, nil
	case n.shape == shapeList && isList && n.children[0].shape == shapeLeaf:
		of := *f
		of.Kind, of.Nullable, of.Nulls = elem, true, []string{}
		if !fits(n.children[0].scalar.kind, &of) {
			return nil, fmt.Errorf("its elements are %s, which a field of type %s cannot hold", n.children[0].describe(), f.Type())
		}
		c.read = func(from nested) (row.Value, error) { return c.list(from, elem, &of) }
		return c, nil
	}
	return nil, unfitting(n, f, row.JSONKind)
}

func unfitting(n *node, f *row.Field, better row.Kind) error {
	return fmt.Errorf("it is %s, which a field of type %s cannot hold: declare it as %s", n.describe(), f.Type(), better)
}

// fits reports whether values of that kind may fit the field: each is checked when it is read.
func fits(kind row.Kind, f *row.Field) bool {
	if kind == f.Kind || f.Coerce != row.CoerceError {
		return true
	}
	var others []row.Kind
	switch kind {
	case row.String:
		return true // it is parsed as the text of a csv file is
	case row.Int, row.Float, row.DecimalKind:
		others = []row.Kind{row.Int, row.Float, row.DecimalKind}
	case row.DateKind:
		others = []row.Kind{row.Timestamp}
	case row.Timestamp:
		others = []row.Kind{row.DateKind}
	case row.BytesKind, row.UUIDKind, row.JSONKind:
		others = []row.Kind{row.String}
	default:
	}
	return slices.Contains(others, f.Kind)
}

func (c *column) simple(raw pq.Value) (row.Value, error) {
	v, err := c.node.scalar.value(raw, c.field.Zone)
	if err != nil {
		return row.Value{}, row.FieldError(c.field.Name, err)
	}
	return fit(c.field, v)
}

// fit returns a value of the file as the field holds it; nothing is lost.
func fit(f *row.Field, v row.Value) (row.Value, error) {
	var err error
	switch kind := v.Kind(); {
	case kind == row.Null:
		return f.Missing()
	case kind == row.String && f.Kind != row.String:
		return sqlvalue.Fit(f, v.Str())
	case kind == row.DecimalKind && f.Kind == row.DecimalKind:
		v, err = f.FitDecimal(v.Decimal())
	case kind == f.Kind:
	case kind == row.Int, kind == row.Float, kind == row.Bool, kind == row.Timestamp:
		return sqlvalue.Fit(f, v.Any())
	default:
		as, ok := sqlvalue.ConvertIn(v, f.Kind, f.Zone)
		if !ok {
			return row.Value{}, sqlvalue.Misfit(f, sqlvalue.Quote(v))
		}
		v = as
	}
	if err == nil {
		err = v.Finite()
	}
	switch {
	case err != nil:
		return row.Value{}, row.FieldError(f.Name, err)
	case f.Nulls == nil:
		return v, nil
	}
	return f.Known(v)
}

func (c *column) document(from nested) (row.Value, error) {
	if from.peek(c.node).DefinitionLevel() < c.node.level {
		return c.field.Missing()
	}
	text, err := from.appendJSON(nil, c.node)
	if err != nil {
		return row.Value{}, row.FieldError(c.field.Name, err)
	}
	return row.JSONValue(row.JSON(text)), nil
}

func (c *column) list(from nested, elem row.Kind, of *row.Field) (row.Value, error) {
	elements, null, err := from.list(c.node, func(v row.Value) (row.Value, error) { return fit(of, v) })
	if err == nil && null {
		return c.field.Missing()
	}
	var v row.Value
	if err == nil {
		v, err = row.ListValue(elem, elements)
	}
	if err != nil {
		return row.Value{}, row.FieldError(c.field.Name, err)
	}
	return v, nil
}
