package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type memory struct {
	reader item.Reader
	plan   *plan
	rows   map[string][]row.Value
	// parts of the key in which trailing blanks are ignored, or nil
	padded []bool
	bytes  int64
}

func (m *memory) load(ctx context.Context) (err error) {
	component := m.reader.Component()
	if closer, ok := component.(item.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
	}
	if opener, ok := component.(item.Opener); ok {
		if err := opener.Open(ctx, nil); err != nil {
			return err
		}
	}
	m.rows = map[string][]row.Value{}
	m.findPadding(component)
	const atOnce = 1000
	items := m.reader.NewItems(atOnce)
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		items.Reset()
		err := m.reader.Fill(ctx, items, atOnce)
		if ended = err == io.EOF; err != nil && !ended { //nolint:errorlint // the end is io.EOF itself
			return fmt.Errorf("read the rows to look up: %w", err)
		}
		for i := range items.Len() {
			r, ok := items.At(i).(item.Row)
			if !ok {
				return fmt.Errorf("the rows to look up are of type %T", items.At(i))
			}
			if err := m.add(r, items.Meta(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// A row with a null in its key never matches.
func (m *memory) add(r item.Row, at item.Meta) error {
	var text []byte
	key := make([]row.Value, len(m.plan.key))
	for i, k := range m.plan.key {
		if key[i] = r.At(k.at); key[i].IsNull() {
			return nil
		}
		text = row.AppendKey(text, m.compared(i, key[i]))
	}
	if _, twice := m.rows[string(text)]; twice {
		return fmt.Errorf("%s: a second row with %s: name more fields in key, or make it unique", at, named(m.plan.key, key))
	}
	values := m.plan.taken(r.Values())
	if m.bytes += sizeOf(text, values); m.bytes > m.plan.bound {
		return fmt.Errorf("%s: the rows to look up take more than max_memory, %d bytes: raise it, or use table", at, m.plan.bound)
	}
	m.rows[string(text)] = values
	return nil
}

func (m *memory) find(_ context.Context, of []byte, key []row.Value) ([]row.Value, error) {
	if m.padded != nil {
		of = nil
		for i, v := range key {
			of = row.AppendKey(of, m.compared(i, v))
		}
	}
	return m.rows[string(of)], nil
}

// A table finds the rows of a char(n) by texts with fewer blanks.
func (m *memory) findPadding(reader any) {
	padder, ok := reader.(interface{ IsPadded(field int) bool })
	if !ok {
		return
	}
	for i, k := range m.plan.key {
		if !padder.IsPadded(k.at) {
			continue
		}
		if m.padded == nil {
			m.padded = make([]bool, len(m.plan.key))
		}
		m.padded[i] = true
	}
}

func (m *memory) compared(i int, v row.Value) row.Value {
	if m.padded == nil || !m.padded[i] || v.Kind() != row.String {
		return v
	}
	return row.StringValue(strings.TrimRight(v.Str(), " "))
}
