package redrive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// reader reads the items that are left, in order: JSON itself, a text by the step's reader. It has
// no position: a repeated redrive reads the items left then.
type reader struct {
	plan      *Plan
	page      []core.SkippedItem
	cursor    cursor
	itemType  item.Type
	documents item.Reader
	texts     item.Reader
	opener    item.RawOpener
	opened    bool // the opener was called
	document  []byte
	meta      item.Meta
	raw       item.RawReader
	// mu guards handed and before: the next chunk may be read while this one commits (rule C19).
	mu sync.Mutex
	// handed are the read items without a committed verdict; before counts the earlier ones.
	handed []int64
	before int64
}

func newReader(ctx context.Context, plan *Plan, itemType item.Type, own item.Reader) (*reader, error) {
	r := &reader{plan: plan, cursor: cursor{plan: plan}}
	if plan.Texts > 0 {
		var ok bool
		if own == nil {
			return nil, errNoTexts
		}
		if r.opener, ok = own.Component().(item.RawOpener); !ok {
			return nil, errNoTexts
		}
		r.texts = own
	}
	if plan.Texts < plan.Items {
		var err error
		if itemType, err = plan.typed(ctx, itemType); err != nil {
			return nil, err
		}
	}
	var err error
	r.itemType = itemType
	r.documents, err = itemType.FromDocuments(r)
	return r, err
}

var errNoTexts = errors.New("redrive: the reader of the step cannot read an item from its text: export the items and provide each as JSON (item)")

func (r *reader) Component() any { return r }

func (r *reader) NewItems(capacity int) item.Items { return r.documents.NewItems(capacity) }

func (r *reader) Fill(ctx context.Context, items item.Items, n int) error {
	for items.Len() < n {
		of, err := r.next(ctx)
		if err != nil {
			return err
		}
		r.raw = nil
		if of.raw == nil {
			r.document = retyped(of.document, r.itemType)
			err = r.documents.Fill(ctx, items, items.Len()+1)
		} else {
			err = r.readText(ctx, items, *of.raw)
		}
		if err != nil {
			return item.Consumed(r.meta, err)
		}
	}
	return nil
}

func (r *reader) readText(ctx context.Context, items item.Items, raw item.RawText) error {
	r.opened = true
	if err := r.opener.OpenRaw(ctx, r.meta, raw); err != nil {
		return exception.Fatal("read the text of a skipped item", err)
	}
	r.raw, _ = r.opener.(item.RawReader)
	before := items.Len()
	err := r.texts.Fill(ctx, items, before+1)
	if err == nil {
		if err = r.texts.Fill(ctx, r.texts.NewItems(1), 1); err == io.EOF { //nolint:errorlint // as the engine takes it
			return nil
		}
		items.Truncate(before)
		err = errors.New("the text is more than one item")
	} else if err == io.EOF { //nolint:errorlint // as the engine takes it
		err = errors.New("the text has no item")
	} else {
		return err
	}
	r.raw = fixed(raw)
	return item.Consumed(r.meta, exception.InvalidItem("", exception.ClassParse, err))
}

type fixed item.RawText

func (f fixed) RawText() item.RawText { return item.RawText(f) }

func (r *reader) RawText() item.RawText {
	if r.raw == nil {
		return item.RawText{}
	}
	return r.raw.RawText()
}

func (r *reader) Close(ctx context.Context) error {
	if closer, ok := r.opener.(item.Closer); ok && r.opened {
		return closer.Close(ctx)
	}
	return nil
}

func (r *reader) Open(context.Context, item.Position) error { return nil }

func (r *reader) ReadDocument(context.Context) ([]byte, error) { return r.document, nil }

func (r *reader) next(ctx context.Context) (given, error) {
	for {
		for len(r.page) > 0 {
			s := r.page[0]
			r.page = r.page[1:]
			of, ok := r.plan.selected(s)
			if !ok {
				continue
			}
			r.hand(s)
			return of, nil
		}
		if r.cursor.end {
			return given{}, io.EOF
		}
		var err error
		if r.page, err = r.cursor.page(ctx); err != nil {
			return given{}, err
		}
	}
}

func (r *reader) hand(s core.SkippedItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handed, r.meta = append(r.handed, s.ID), s.Meta
}

func (r *reader) Meta() item.Meta { return r.meta }

func (r *reader) committed(from, to int64) ([]int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from < r.before || to < from || to > r.before+int64(len(r.handed)) {
		return nil, fmt.Errorf("redrive: outcomes %d to %d of %d to %d", from, to, r.before, r.before+int64(len(r.handed)))
	}
	r.handed, r.before = r.handed[from-r.before:], from
	return r.handed[:to-from], nil
}

// If the columns are known only when the source is open, they are taken from the stored items.
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
	err := p.each(ctx, func(s core.SkippedItem) error {
		of, ok := p.selected(s)
		if !ok || of.raw != nil {
			return nil
		}
		if err := c.add(of.document); err != nil {
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

type columns struct {
	fields []row.Field
	index  map[string]int
	known  int // by declaration
}

func (c *columns) add(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("it is not a JSON object")
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
			return fmt.Errorf("%s has another type than in earlier items", name)
		}
	}
	return nil
}

func wider(k row.Kind, value any) (row.Kind, bool) {
	kind := row.Null
	if k == row.JSONKind {
		return k, true
	}
	switch v := value.(type) {
	case nil:
		return k, true
	case string:
		kind = row.String
	case bool:
		kind = row.Bool
	case map[string]any, []any:
		return row.JSONKind, true // which holds any other value too
	case json.Number:
		kind = row.Int
		if _, err := v.Int64(); err != nil {
			kind = row.Float
		}
		if x, err := v.Float64(); kind == row.Float && (err != nil || row.FloatText(x) != v.String()) {
			kind = row.DecimalKind // a float lacks its digits
		}
		if k == row.Int || k == row.Float || k == row.DecimalKind {
			return max(k, kind), true
		}
	}
	return kind, kind != row.Null && (k == row.Null || k == kind)
}
