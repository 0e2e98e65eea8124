package csv

import (
	"errors"
	"io"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// SplitRaw implements itemextra.Splitter.
func (c *readerConfig) SplitRaw(raw item.RawText) (fields []itemextra.Field, err error) {
	r, _, err := recordReader(*c, c.Item)
	if err != nil {
		return nil, err
	}
	r.useDelimiter(raw.Delimiter)
	r.csv.blanks = true
	text := []byte(raw.Text)
	if _, err := r.csv.scan(text, true); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for i, f := range r.csv.fields {
		from, to := r.csv.span(i, text, 0)
		fields = append(fields, itemextra.Field{Text: string(r.csv.content[f.from:f.to]), From: from, To: to})
	}
	names, err := rawNames(r, raw)
	for i, name := range names {
		if i == len(fields) {
			fields = append(fields, itemextra.Field{From: len(text), To: len(text)})
		}
		fields[i].Name = name
	}
	return fields, err
}

// rawNames are the names of the columns of the last record.
func rawNames(r *reader, raw item.RawText) ([]string, error) {
	of, err := compileRecords(&r.cfg, r.cfg.Item)
	switch {
	case err != nil:
		return nil, err
	case of != nil:
		records := newRecordsReader(r, of)
		records.text = string(r.csv.content)
		return of.names(records.typeOf()), nil
	case !r.needsHead():
		return r.want.Names(), nil
	}
	return raw.Columns, nil
}

func (p *types) names(t *recordtypes.Type) (names []string) {
	if t == nil {
		return nil
	}
	for name, at := range p.kinds[t.Number()].Columns {
		for len(names) < at {
			names = append(names, "")
		}
		names[at-1] = name
	}
	return names
}
