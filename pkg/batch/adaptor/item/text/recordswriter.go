package text

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// rule C15p: a header when its values change, and the trailers
type recordsWriter struct {
	*program
	headers []*recordtypes.Type
	only    *recordtypes.Type // the only type of details; nil means that the field record names it
	state   *recordtypes.State
	item    written
	line    []byte
}

// a recordtypes.Record
type written struct {
	values []row.Value // nil for a header that an earlier attempt wrote
	raw    []byte
}

func (w *written) Column(t *recordtypes.Type, column int) (row.Value, error) {
	if w.values == nil {
		return row.Value{}, nil
	}
	return w.values[t.Fields[column]], nil
}

func (w *written) Count(*recordtypes.Type) (int64, error) { return 0, errors.ErrUnsupported }

func (w *written) Sum(*recordtypes.Type, int) (row.Value, error) {
	return row.Value{}, errors.ErrUnsupported
}

func (w *written) Raw(*recordtypes.Type) []byte { return w.raw }

// nil if there are no record types
func newRecordsWriter(cfg *fixedWriterConfig, in item.Type) (*recordsWriter, error) {
	if cfg.Records == nil {
		return nil, nil
	}
	if err := named(in, "records"); err != nil {
		return nil, err
	}
	of, err := shapeOf(cfg.Length, cfg.Encoding)
	if err != nil {
		return nil, &registry.ConfigError{Key: "encoding", Err: err}
	}
	p := &program{shape: of}
	types, err := p.several(cfg.Records, cfg.TypeAt, in.Schema())
	if err == nil {
		err = p.complete(types, in.Schema(), false)
	}
	if err != nil {
		return nil, err
	}
	w := &recordsWriter{program: p, headers: p.plan.Headers(), state: p.plan.Start()}
	var details []*recordtypes.Type
	for _, t := range types {
		switch {
		case t == p.any || t.Role == recordtypes.Ignored:
			return nil, &registry.ConfigError{Key: "records." + t.Name, Err: errors.New("the writer writes no such record: omit it")}
		case t.Role == recordtypes.Detail:
			details = append(details, t)
		}
	}
	switch {
	case len(details) == 1:
		w.only = details[0]
	case p.plan.TypeField < 0:
		return nil, &registry.ConfigError{Key: "records", Err: fmt.Errorf("there are %d types of details, but no field selects one: the item needs a string field %s with the name of the type", len(details), recordtypes.TypeFieldName)}
	}
	return w, nil
}

func (w *recordsWriter) String() string {
	var parts []string
	for i, t := range w.plan.Types {
		text := fmt.Sprintf("%s %s (%s)", t.Role, t.Name, w.of[i].String())
		if t.HasCount {
			text += " count " + w.of[i].count.String()
		}
		if len(w.of[i].sums) > 0 {
			text += " sums (" + (&layout{cells: w.of[i].sums}).String() + ")"
		}
		parts = append(parts, text)
	}
	if w.typeAt.first > 0 {
		parts = append(parts, "type_at "+w.typeAt.String())
	}
	return strings.Join(parts, ", ")
}

func (w *recordsWriter) begin(at recordtypes.Position, resumed bool) (err error) {
	w.state = w.plan.Start()
	if resumed {
		w.state, err = w.plan.Restore(at, func(_ *recordtypes.Type, raw []byte) (recordtypes.Record, error) {
			return &written{raw: raw}, nil
		})
	}
	return err
}

func (w *recordsWriter) detail(dst []byte, schema *row.Schema, values []row.Value) ([]byte, error) {
	t, err := w.typeOfItem(values)
	if err != nil {
		return dst, err
	}
	return w.recordOf(dst, t, schema, values)
}

// next makes the trailers and headers before an item's record, and counts the record.
func (w *recordsWriter) next(emit func([]byte) error, schema *row.Schema, values []row.Value) error {
	t, err := w.typeOfItem(values)
	if err != nil {
		return err
	}
	w.item = written{values: values}
	for _, h := range w.headers {
		if w.state.HasValues(h, &w.item) {
			continue
		}
		if err := w.head(emit, h, schema, values); err != nil {
			return err
		}
	}
	return w.state.Count(t, &w.item)
}

func (w *recordsWriter) typeOfItem(values []row.Value) (*recordtypes.Type, error) {
	at := w.plan.TypeField
	if at < 0 {
		return w.only, nil
	}
	name := values[at].Str()
	for _, t := range w.plan.Types {
		if t.Name == name && t.Role == recordtypes.Detail {
			return t, nil
		}
	}
	return nil, fmt.Errorf("field %s: %q is not a type of details (records has %s)", recordtypes.TypeFieldName, name, w.plan.Names())
}

func (w *recordsWriter) head(emit func([]byte) error, h *recordtypes.Type, schema *row.Schema, values []row.Value) error {
	raw, err := w.recordOf(nil, h, schema, values)
	if err != nil {
		return fmt.Errorf("the header %s: %w", h.Name, err)
	}
	w.item.raw = raw
	if w.state.HasHead(h, raw) {
		return w.state.SetHead(h, &w.item, 0)
	}
	if err := w.trailers(emit, w.state, h, schema); err != nil {
		return err
	}
	if err := w.state.Header(h, &w.item, 0); err != nil {
		return err
	}
	return emit(raw)
}

// h is nil at the end of the file.
func (w *recordsWriter) trailers(emit func([]byte) error, state *recordtypes.State, h *recordtypes.Type, schema *row.Schema) error {
	for _, t := range state.OpenTrailers(h) {
		count, sums, err := state.Totals(t)
		if err == nil {
			w.line, err = w.trailerOf(w.line[:0], t, count, sums, schema)
		}
		if err != nil {
			return fmt.Errorf("the trailer %s: %w", t.Name, err)
		}
		state.Close(t)
		if err := emit(w.line); err != nil {
			return err
		}
	}
	return nil
}

func (w *recordsWriter) recordOf(dst []byte, t *recordtypes.Type, schema *row.Schema, values []row.Value) ([]byte, error) {
	b := w.of[t.Number()]
	parts := make([]part, 0, len(b.cells)+1)
	for _, c := range b.cells {
		raw, err := c.append(nil, w.codec, schema.Field(c.field), values[c.field])
		if err != nil {
			return dst, err
		}
		parts = append(parts, part{c.span, raw})
	}
	return w.assemble(dst, t, parts)
}

func (w *recordsWriter) trailerOf(dst []byte, t *recordtypes.Type, count int64, sums []row.Decimal, schema *row.Schema) ([]byte, error) {
	b := w.of[t.Number()]
	var parts []part
	if t.HasCount {
		digits := strconv.FormatInt(count, 10)
		if len(digits) > b.count.width() {
			return dst, fmt.Errorf("there are %d records, but it has room for %d digits (count at %s)", count, b.count.width(), b.count)
		}
		raw, err := w.marked(strings.Repeat("0", b.count.width()-len(digits)) + digits)
		if err != nil {
			return dst, err
		}
		parts = append(parts, part{b.count, []byte(raw)})
	}
	for i, c := range b.sums {
		raw, err := c.append(nil, w.codec, schema.Field(c.field), row.DecimalValue(sums[i]))
		if err != nil {
			return dst, fmt.Errorf("the sum of %s: %w", c.name, err)
		}
		parts = append(parts, part{c.span, raw})
	}
	return w.assemble(dst, t, parts)
}

type part struct {
	span
	raw []byte
}

func (w *recordsWriter) assemble(dst []byte, t *recordtypes.Type, parts []part) ([]byte, error) {
	name, err := w.marked(t.Name)
	if err != nil {
		return dst, err
	}
	mark := part{span{1, w.spansOf([]byte(name))}, []byte(name)}
	if w.typeAt.first > 0 {
		mark.span = w.typeAt
		for range w.typeAt.width() - w.spansOf([]byte(name)) {
			mark.raw = append(mark.raw, w.blank())
		}
	}
	parts = append(parts, mark)
	slices.SortFunc(parts, func(a, b part) int { return a.first - b.first })
	at := 1
	for _, p := range parts {
		for ; at < p.first; at++ {
			dst = append(dst, w.blank())
		}
		dst, at = append(dst, p.raw...), p.last+1
	}
	return dst, nil
}
