package csv

import (
	"context"
	"math"
	"slices"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// RawText implements item.RawReader: the last record without the empty lines and comments before it.
func (r *reader) RawText() item.RawText {
	raw := item.RawText{}
	if r.lost != nil {
		raw = *r.lost
	} else {
		text, start := recordText(r)
		raw = item.RawText{Text: string(text), Offset: r.from + int64(start), Length: int64(len(text))}
	}
	raw.Delimiter = r.sep
	columns := r.columns
	if !r.cfg.hasHeader() {
		columns = columnNames(r.width)
	}
	if fitsPosition(columns) { // otherwise they are read again
		raw.Columns = columns
	}
	return raw
}

// recordText is the text of the last record, and its start after r.from.
func recordText(r *reader) (text []byte, start int) {
	start = skippedBytes(r, int(r.line-r.fromLines-1))
	return filestream.WithoutEnd(r.in.Buffered(r.from)[start : r.next-r.from]), start
}

// skippedBytes is the size of the lines before a record.
func skippedBytes(r *reader, lines int) (size int) {
	for range lines {
		_, n := r.csv.cutLine(r.in.Buffered(r.from)[size:], true)
		size += n
	}
	return size
}

// OpenRaw implements item.RawOpener. A header too wide to be stored is read from the file.
func (r *reader) OpenRaw(ctx context.Context, meta item.Meta, raw item.RawText) error {
	r.Whole()
	if err := r.bindRaw(ctx, raw); err != nil {
		return err
	}
	r.in, r.dead = filestream.TextInput(raw.Text, raw.Offset), nil
	r.csv.cr, r.footer = false, 0
	r.useDelimiter(raw.Delimiter)
	r.cfg.Path = meta.Path
	r.rewindTo(raw.Offset, max(meta.Line-1, 0))
	return nil
}

// The records of one header have one schema, so equal columns are kept.
func (r *reader) bindRaw(ctx context.Context, raw item.RawText) error {
	switch {
	case r.index != nil && (raw.Columns == nil || slices.Equal(raw.Columns, r.columns)):
		return nil
	case raw.Columns == nil && r.cfg.Columns == 0:
		if err := r.Open(ctx, nil); err != nil {
			return err
		}
		if err := r.learnWidth(ctx, math.MaxInt64); err != nil {
			return err
		}
		return r.in.Close()
	}
	r.columns = raw.Columns
	return r.bind()
}
