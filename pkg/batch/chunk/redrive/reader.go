package redrive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// reader reads the JSON of the items: a item.DocumentReader. It has no position: a
// redrive that runs again reads the items that are left then.
type reader struct {
	plan *Plan
	page []core.SkippedItem
	last int64 // the last item of the page
	end  bool
	meta item.Meta
	// handed are the numbers of the items that were read, from the first one without a
	// committed verdict; before counts the earlier ones.
	handed []int64
	before int64
}

// ReadDocument returns the next item.
func (r *reader) ReadDocument(ctx context.Context) ([]byte, error) {
	for {
		for len(r.page) > 0 {
			s := r.page[0]
			r.page = r.page[1:]
			text, ok := r.plan.document(s)
			if !ok {
				continue
			}
			r.handed, r.meta = append(r.handed, s.ID), s.Meta
			return text, nil
		}
		if r.end {
			return nil, io.EOF
		}
		page, err := r.plan.page(ctx, r.last)
		if err != nil {
			return nil, err
		}
		r.page, r.end = page, len(page) < pageSize
		if len(page) > 0 {
			r.last = page[len(page)-1].ID
		}
	}
}

// Meta is where the item came from when it was skipped.
func (r *reader) Meta() item.Meta { return r.meta }

// committed returns the numbers of the outcomes from to to-1, counted from the reader's
// start, and drops the earlier ones.
func (r *reader) committed(from, to int64) ([]int64, error) {
	if from < r.before || to < from || to > r.before+int64(len(r.handed)) {
		return nil, fmt.Errorf("redrive: outcomes %d to %d of %d to %d", from, to, r.before, r.before+int64(len(r.handed)))
	}
	r.handed, r.before = r.handed[from-r.before:], from
	return r.handed[:to-from], nil
}

// typed returns the item type as it can be read from JSON. Columns that are known only
// when the source is open are taken from the stored items.
func (p *Plan) typed(ctx context.Context, it item.Type) (item.Type, error) {
	if it.GoType() != reflect.TypeFor[item.Row]() || it.Schema() == nil || !it.Schema().IsOpen() {
		return it, nil
	}
	c := columns{index: map[string]int{}}
	for _, f := range it.Schema().Fields() {
		c.index[f.Source()] = len(c.fields)
		c.fields = append(c.fields, f)
	}
	c.known = len(c.fields)
	err := p.each(ctx, 0, func(s core.SkippedItem) error {
		text, ok := p.document(s)
		if !ok {
			return nil
		}
		if err := c.add(text); err != nil {
			return fmt.Errorf("skipped item %d: %w", s.ID, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := c.known; i < len(c.fields); i++ {
		if c.fields[i].Kind == row.Null { // no item has a value
			c.fields[i].Kind = row.String
		}
	}
	schema, err := row.NewSchema(c.fields...)
	if err != nil {
		return nil, err
	}
	return item.RowOf("", schema), nil
}

// columns collects the fields of stored rows.
type columns struct {
	fields []row.Field
	index  map[string]int
	known  int // by declaration
}

func (c *columns) add(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("it is no JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return err
		}
		name := fmt.Sprint(key)
		i, ok := c.index[name]
		if !ok {
			i = len(c.fields)
			c.index[name] = i
			c.fields = append(c.fields, row.Field{Name: name, Nullable: true})
		}
		if i < c.known {
			continue
		}
		if c.fields[i].Kind, ok = wider(c.fields[i].Kind, value); !ok {
			return fmt.Errorf("%s is not of the type that it has in the items before", name)
		}
	}
	return nil
}

// wider is the kind that holds what k does and the value.
func wider(k row.Kind, value any) (row.Kind, bool) {
	kind := row.Null
	switch v := value.(type) {
	case nil:
		return k, true
	case string:
		kind = row.String
	case bool:
		kind = row.Bool
	case json.Number:
		kind = row.Int
		if _, err := v.Int64(); err != nil {
			kind = row.Float
		}
		if k == row.Int || k == row.Float {
			return max(k, kind), true
		}
	}
	return kind, kind != row.Null && (k == row.Null || k == kind)
}
