package text

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// newFixedReader returns a reader of items of the type.
func newFixedReader(cfg fixedReaderConfig, itemType item.Type) (item.Reader, error) {
	err := cfg.Validate()
	var p *program
	if err == nil {
		p, err = compile(&cfg, itemType)
	}
	if err != nil {
		return nil, fmt.Errorf("fixed: %w", err)
	}
	header, err := p.marked(cfg.Header)
	if err != nil {
		return nil, fmt.Errorf("fixed: header: %w", err)
	}
	return itemType.FromRecords(&reader{
		file: file{name: "fixed", Confined: filestream.Confined{By: dividedBy(&cfg)}, path: cfg.Path, compression: cfg.Compression, member: cfg.Member, encoding: cfg.Encoding, longest: cfg.MaxLine, size: cfg.Length},
		cfg:  cfg, head: header, program: p, record: fileRecord{program: p}, needed: p.needed(), state: p.plan.Start(), schema: itemType.Schema(),
	})
}

type reader struct {
	file
	cfg     fixedReaderConfig
	head    string
	program *program
	record  fileRecord
	needed  int // bytes that determine a record's type
	state   *recordtypes.State
	schema  *row.Schema

	single    bool // the input is the text of one record
	wrong     error
	wrongText item.RawText
}

type readerPosition struct {
	filePosition
	recordtypes.Position
}

func (r *reader) Schema() *row.Schema { return r.schema }

// Open opens the file, and reads its header.
func (r *reader) Open(ctx context.Context, at item.Position) error {
	r.single, r.state = false, r.program.plan.Start()
	if at = r.Start(at); at != nil {
		var pos readerPosition
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("fixed: cannot restart: the stored position is unreadable: %w", err)
		}
		var err error
		if r.state, err = r.program.plan.Restore(pos.Position, func(_ *recordtypes.Type, raw []byte) (recordtypes.Record, error) {
			return r.recordOf(string(raw)), nil
		}); err != nil {
			return fmt.Errorf("fixed: %s: %w", r.path, err)
		}
		return r.open(ctx, &pos.filePosition)
	}
	if err := r.open(ctx, nil); err != nil {
		return err
	}
	return r.header(ctx)
}

func (r *reader) recordOf(text string) *fileRecord {
	one := &fileRecord{program: r.program}
	one.set(text)
	return one
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
		case !strings.HasPrefix(text, r.head):
			return fmt.Errorf("fixed: %s:%d: the file has no header: its first line must begin with %q (header)", r.path, r.line, r.cfg.Header)
		}
	}
	return nil
}

// One that does not fit is an item.ConsumedError.
func (r *reader) ReadRecord(ctx context.Context, dst []row.Value) error {
	if err := r.wrong; err != nil {
		r.wrong, r.lost = nil, &r.wrongText
		r.line++
		return r.invalid(err)
	}
	for {
		text, err := r.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return r.end(err)
		case item.IsConsumed(err):
			return r.lose(err)
		case err != nil:
			return err
		case text == "":
			continue
		}
		r.record.set(text)
		t := r.program.find(text)
		switch {
		case t == nil:
			return r.lose(r.invalid(r.unknown()))
		case t.Role == recordtypes.Detail:
			return r.detail(ctx, t, dst)
		case r.single:
			return r.invalid(fmt.Errorf("the %s is a %s, not an item", r.program.unit(), t.Role))
		}
		if err := r.follow(t); err != nil {
			return err
		}
	}
}

func (r *reader) end(eof error) error {
	if err := r.state.End(); err != nil {
		return r.broken(r.past+1, err)
	}
	return eof
}

func (r *reader) lose(err error) error {
	if lost := r.state.Lost(); lost != nil {
		return r.broken(r.line, lost)
	}
	return err
}

func (r *reader) unknown() error {
	hint := `"*": {as: ignore} skips all others`
	if r.program.typeAt.first > 0 {
		name, err := r.record.line.read(r.program.typeAt)
		if err != nil {
			name = r.record.line.at(r.program.typeAt)
		}
		return fmt.Errorf("the record is of the type %q (type_at), but records has %s; %s", name, r.program.plan.Names(), hint)
	}
	begins, err := r.record.line.read(span{1, max(r.needed, 1)})
	if err != nil {
		begins = r.record.line.at(span{1, max(r.needed, 1)})
	}
	return fmt.Errorf("the record begins with %q, but records has %s; %s", begins, r.program.plan.Names(), hint)
}

func (r *reader) detail(ctx context.Context, t *recordtypes.Type, dst []row.Value) error {
	if err := r.state.Count(t, &r.record); err != nil {
		return r.broken(r.line, err)
	}
	if err := r.fits(t); err != nil {
		return r.invalid(err)
	}
	if err := r.state.Fill(t, &r.record, dst); err != nil {
		return item.Consumed(r.Meta(), err)
	}
	return r.settle(ctx)
}

func (r *reader) fits(t *recordtypes.Type) error {
	err := r.record.fits(t, r.cfg.Short)
	if errors.Is(err, errNotValid) {
		return r.notValid()
	}
	return err
}

// If the record cannot be read, later ones lack its values.
func (r *reader) follow(t *recordtypes.Type) error {
	err := error(nil)
	switch t.Role {
	case recordtypes.Header:
		if err = r.fits(t); err == nil {
			err = r.state.Header(t, &r.record, r.line)
		}
	case recordtypes.Trailer:
		err = r.state.Trailer(t, &r.record)
	default:
	}
	if err != nil {
		return r.broken(r.line, err)
	}
	return nil
}

// settle reads the trailers after a detail, so that an incomplete file fails before its last item is
// returned and committed. Errors are left to the next read.
func (r *reader) settle(ctx context.Context) error {
	if !r.program.plan.HasTrailers() || r.single {
		return nil
	}
	defer func(line int64) { r.line = line }(r.line)
	for {
		text, ok, err := r.peek(ctx)
		switch {
		case errors.Is(err, io.EOF):
			if err := r.state.End(); err != nil {
				return r.broken(r.past+1, err)
			}
			return nil
		case !ok:
			return nil
		}
		var t *recordtypes.Type
		if len(text) > 0 {
			t = r.program.find(string(text[:min(len(text), r.needed)]))
			if t == nil || t.Role == recordtypes.Detail || t.Role == recordtypes.Header {
				return nil
			}
		}
		whole, err := r.next(ctx)
		if err != nil {
			return nil //nolint:nilerr // it was there: the next read finds out
		}
		if t == nil {
			continue
		}
		r.record.set(whole)
		if err := r.follow(t); err != nil {
			return err
		}
	}
}

func (r *reader) Position() (item.Position, error) {
	at, err := r.position()
	if err != nil {
		return nil, err
	}
	return json.Marshal(readerPosition{filePosition: at, Position: r.state.Position()})
}

// the last record, with the headers above it
func (r *reader) RawText() item.RawText {
	raw := r.file.RawText()
	if r.lost == nil {
		raw.Text = r.program.shown(raw.Text)
	}
	raw.Heads = r.state.RawHeads(func(head []byte) string { return r.program.shown(string(head)) })
	return raw
}

func (r *reader) OpenRaw(ctx context.Context, meta item.Meta, raw item.RawText) error {
	r.single, r.wrongText = true, raw
	text, err := r.program.bytesOf(raw.Text)
	if size := r.program.length; err == nil && size > 0 && len(text) != size {
		err = fmt.Errorf("the record has %d bytes, not %d (length)", len(text), size)
	}
	if r.wrong = err; err != nil {
		text = ""
	}
	raw.Text = text
	if r.state, err = r.program.plan.RestoreRawHeads(raw.Heads, func(_ *recordtypes.Type, text string) (recordtypes.Record, error) {
		head, err := r.program.bytesOf(text)
		return r.recordOf(head), err
	}); err != nil {
		return fmt.Errorf("fixed: %w", err)
	}
	return r.file.OpenRaw(ctx, meta, raw)
}
