package text

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// SplitRaw implements itemextra.Splitter.
func (c *fixedReaderConfig) SplitRaw(raw item.RawText) (fields []itemextra.Field, err error) {
	p, err := compile(c, c.Item)
	if err != nil {
		return nil, err
	}
	text, err := p.bytesOf(raw.Text)
	if err != nil {
		return nil, err
	}
	t := p.find(text)
	if t == nil {
		return nil, errors.New("it is of none of the types in records")
	}
	record := &fileRecord{program: p}
	record.set(text)
	for _, cell := range p.of[t.Number()].cells {
		to := min(record.sizeOf(cell.last), len(raw.Text))
		from := min(record.sizeOf(cell.first-1), to)
		fields = append(fields, itemextra.Field{Name: cell.name, Text: raw.Text[from:to], From: from, To: to})
	}
	return fields, nil
}
