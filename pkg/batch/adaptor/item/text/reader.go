package text

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// NewReader returns a reader of items of the type.
func NewReader(cfg ReaderConfig, itemType item.Type) (item.Reader, error) {
	err := cfg.Validate()
	var l *layout
	var total *sums
	if err == nil {
		l, err = readerLayout(&cfg, itemType)
	}
	if err == nil {
		total, err = newSums(cfg.Trailer, l, itemType.Schema())
	}
	if err != nil {
		return nil, fmt.Errorf("fixed: %w", err)
	}
	return itemType.FromRecords(&reader{
		file: file{name: "fixed", path: cfg.Path, compression: cfg.Compression, member: cfg.Member, encoding: cfg.Encoding, longest: cfg.MaxLine},
		cfg:  cfg, layout: l, schema: itemType.Schema(), sums: total,
	})
}

// reader is the item.RecordReader of fixed places.
type reader struct {
	file
	cfg    ReaderConfig
	layout *layout
	schema *row.Schema
	sums   *sums

	records int64 // lines of records before the next one
	ended   bool  // the trailer was read
	single  bool  // the input is the text of one record
}

// position is the reader's item.Position.
type position struct {
	filePosition
	sumPosition
	Records int64 `json:"records"`
	Ended   bool  `json:"ended,omitempty"`
}

// Schema returns the fields of the records.
func (r *reader) Schema() *row.Schema { return r.schema }

// Open opens the file, and reads its header.
func (r *reader) Open(ctx context.Context, at item.Position) error {
	r.records, r.ended = 0, false
	r.sums.clear()
	if at != nil {
		var pos position
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("fixed: cannot restart: its position is not readable: %w", err)
		}
		r.records, r.ended = pos.Records, pos.Ended
		if err := r.sums.restore(pos.sumPosition); err != nil {
			return fmt.Errorf("fixed: %w", err)
		}
		return r.open(ctx, &pos.filePosition)
	}
	if err := r.open(ctx, nil); err != nil {
		return err
	}
	return r.header(ctx)
}

func (r *reader) header(ctx context.Context) error {
	lines := r.cfg.HeaderLines
	if r.cfg.Header != "" {
		lines = 1
	}
	for range lines {
		switch text, err := r.next(ctx); {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("fixed: %s:%d: the file has no header: it ends here", r.path, r.line+1)
		case err != nil:
			return err
		case !strings.HasPrefix(text, r.cfg.Header):
			return fmt.Errorf("fixed: %s:%d: the file has no header: its first line should begin with %q (header)", r.path, r.line, r.cfg.Header)
		}
	}
	return nil
}

// ReadRecord reads the next record. One that does not fit is a item.ConsumedError: the
// next call reads the record behind it.
func (r *reader) ReadRecord(ctx context.Context, dst []row.Value) error {
	text, err := r.record(ctx)
	if err != nil {
		return err
	}
	l := lineOf(text)
	if err := r.sums.read(l, r.schema, r.layout.cells); err != nil {
		return r.broken(r.line, err)
	}
	switch {
	case !utf8.ValidString(text):
		return r.invalid(r.notValid())
	case !strings.HasPrefix(text, r.layout.mark):
		return r.invalid(fmt.Errorf("the line does not begin with %q (record)", r.layout.mark))
	case l.size < r.layout.width && !r.cfg.Short:
		return r.invalid(fmt.Errorf("the line has %d characters, and its columns take %d (short: true takes it as it is)", l.size, r.layout.width))
	}
	for i := range dst {
		dst[i] = r.schema.Field(i).Default // of an optional field without a column
	}
	for _, c := range r.layout.cells {
		if dst[c.field], err = c.parse(l, r.schema); err != nil {
			return item.Consumed(r.Meta(), fmt.Errorf("characters %s: %w", c.span, err))
		}
	}
	return nil
}

// record returns the next line that is one, or io.EOF behind a trailer that is right.
func (r *reader) record(ctx context.Context) (string, error) {
	for {
		text, err := r.next(ctx)
		switch {
		case errors.Is(err, io.EOF) && r.cfg.Trailer != nil && !r.ended && !r.single:
			return "", r.broken(r.line+1, fmt.Errorf("the file has no trailer (a line that begins with %q) behind %d records: it is not whole", r.cfg.Trailer.Begins, r.records))
		case item.IsConsumed(err) && r.ended, err == nil && r.ended && text != "":
			return "", r.broken(r.line, errors.New("the file goes on behind its trailer"))
		case item.IsConsumed(err):
			r.records++
			r.sums.lost()
			return "", err
		case err != nil:
			return "", err
		case text == "":
		case r.cfg.Trailer != nil && strings.HasPrefix(text, r.cfg.Trailer.Begins) && !r.single:
			if err := r.trailer(text); err != nil {
				return "", r.broken(r.line, err)
			}
			r.ended = true
		default:
			r.records++
			return text, nil
		}
	}
}

// trailer compares what the trailer says with what was read.
func (r *reader) trailer(text string) error {
	if err := r.count(text); err != nil {
		return err
	}
	return r.sums.check(text, r.schema)
}

func (r *reader) count(text string) error {
	if r.cfg.Trailer.Count == "" {
		return nil
	}
	at, err := spanOf(r.cfg.Trailer.Count)
	if err != nil {
		return err
	}
	said := strings.TrimSpace(lineOf(text).at(at))
	n, err := strconv.ParseInt(said, 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("the trailer has no number of records at %s (count): %.40q", at, said)
	case n != r.records:
		return fmt.Errorf("the trailer says %d records, and the file has %d: it is not whole", n, r.records)
	}
	return nil
}

// Position returns where the next record starts.
func (r *reader) Position() (item.Position, error) {
	at, err := r.position()
	if err != nil {
		return nil, err
	}
	return json.Marshal(position{filePosition: at, sumPosition: r.sums.position(), Records: r.records, Ended: r.ended})
}

// OpenRaw implements item.RawOpener: the text is a record, wherever it stands.
func (r *reader) OpenRaw(ctx context.Context, meta item.Meta, raw item.RawText) error {
	r.single, r.records, r.ended = true, 0, false
	return r.file.OpenRaw(ctx, meta, raw)
}
