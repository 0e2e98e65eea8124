package text

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Offsets are offsets of filestream.Input.
type file struct {
	name, path, member string
	compression        filestream.ReadCompression
	encoding           filestream.EncodingName
	longest            registry.Size
	accept             bool
	size               int // 0 means that a record is a line

	filestream.Confined
	in   *filestream.Input
	at   int64 // offset of the next line
	past int64 // lines before it
	line int64
	dead error
	// of the last line; lost is the line that was given up last
	last, length int64
	lost         *item.RawText
}

type filePosition struct {
	filestream.InputPosition
	Lines int64 `json:"lines"`
}

func (f *file) Meta() item.Meta { return item.Meta{Path: f.path, Line: f.line} }

func (f *file) AcceptChanges() { f.accept = true }

func (f *file) open(ctx context.Context, at *filePosition) error {
	if f.longest == 0 {
		f.longest = defaultMaxLine
	}
	cfg := filestream.InputConfig{Path: f.path, Compression: f.compression, Member: f.member, Encoding: f.encoding, Accept: f.accept, Divided: f.Divided(), Lines: f.size == 0, Raw: f.size > 0}
	var from *filestream.InputPosition
	if at != nil {
		from = &at.InputPosition
	}
	in, err := filestream.OpenInput(ctx, cfg, from)
	if err != nil {
		f.in = nil
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.in, f.dead = in, nil
	if at == nil {
		f.goTo(in.Start(), 0)
	} else {
		f.goTo(at.Offset, at.Lines)
	}
	if bytes, known := in.Size(); known && f.size > 0 && bytes%int64(f.size) != 0 {
		err := fmt.Errorf("%s: %s: %w", f.name, f.path, f.odd(ctx, bytes))
		f.in = nil
		return errors.Join(err, in.Close())
	}
	return nil
}

// The file does not end with a record.
func (f *file) odd(ctx context.Context, bytes int64) error {
	rest, hint := bytes%int64(f.size), ""
	if f.at == 0 {
		head, err := f.in.Record(ctx, 0, f.size+1)
		if err == nil && len(head) > f.size && (head[f.size] == '\n' || head[f.size] == '\r') {
			hint = "; a line end follows its first record: omit length if the file has lines"
		}
	}
	return f.cut(bytes-rest, rest, hint)
}

func (f *file) cut(at, has int64, hint string) error {
	return fmt.Errorf("byte %d: the file ends within a record, which has %d bytes instead of %d (length)%s", at, has, f.size, hint)
}

func (f *file) goTo(offset, lines int64) {
	f.in.Rewind(offset)
	f.in.Keep(offset)
	f.at, f.past, f.line, f.lost = offset, lines, lines, nil
}

// next returns a line without its end, or a record's bytes, or io.EOF. A line that is too long is consumed.
func (f *file) next(ctx context.Context) (string, error) {
	if f.in == nil {
		return "", fmt.Errorf("%s: the reader is not open", f.name)
	}
	if f.dead != nil {
		return "", f.dead
	}
	if f.Ends(f.at) {
		return "", io.EOF
	}
	text, err := f.take(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%s: %s:%d: %w", f.name, f.path, f.past+1, err)
	case text == nil:
		return "", f.skip(ctx)
	case len(text) < f.size:
		return "", f.broken(f.past+1, f.cut(f.at, int64(len(text)), ""))
	}
	f.lost = nil
	whole := f.without(text)
	f.last, f.length = f.at, int64(len(whole))
	f.move(int64(len(text)))
	return string(whole), nil
}

// nil means that the line is too long.
func (f *file) take(ctx context.Context) ([]byte, error) {
	if f.size > 0 {
		return f.in.Record(ctx, f.at, f.size)
	}
	return f.in.Line(ctx, f.at, int64(f.longest))
}

func (f *file) without(line []byte) []byte {
	if f.size > 0 {
		return line
	}
	return filestream.WithoutEnd(line)
}

// peek is next without advancing; its text is invalid after the next call.
func (f *file) peek(ctx context.Context) (text []byte, ok bool, err error) {
	text, err = f.take(ctx)
	if err != nil || text == nil || len(text) < f.size {
		return nil, false, err
	}
	return f.without(text), true, nil
}

func (f *file) move(size int64) {
	f.at += size
	f.past++
	f.line = f.past
	f.in.Keep(f.at)
}

func (f *file) skip(ctx context.Context) error {
	end, err := f.in.SkipLine(ctx, f.at)
	if err != nil { // some of it is no longer buffered, so that it cannot be read again
		return f.broken(f.past+1, err)
	}
	f.move(end - f.at)
	raw := f.in.Skipped().Raw()
	f.lost = &raw
	return f.invalid(fmt.Errorf("the line has %d bytes, more than %d (max_line)", raw.Length, f.longest))
}

func (f *file) broken(line int64, err error) error {
	f.dead = fmt.Errorf("%s: %s:%d: %w", f.name, f.path, line, err)
	return f.dead
}

func (f *file) notValid() error { return fmt.Errorf("the line %s", f.in.NotValid()) }

func (f *file) invalid(err error) error {
	return item.Consumed(f.Meta(), exception.InvalidItem("", exception.ClassParse, err))
}

func (f *file) RawText() item.RawText {
	if f.lost != nil {
		return *f.lost
	}
	return item.RawText{Text: string(f.in.Buffered(f.last)[:f.length]), Offset: f.last, Length: f.length}
}

func (f *file) OpenRaw(_ context.Context, meta item.Meta, raw item.RawText) error {
	if f.longest == 0 {
		f.longest = defaultMaxLine
	}
	f.Whole()
	f.path, f.in, f.dead = meta.Path, filestream.TextInput(raw.Text, raw.Offset), nil
	f.goTo(raw.Offset, max(meta.Line-1, 0))
	return nil
}

func (f *file) position() (filePosition, error) {
	if f.in == nil {
		return filePosition{}, fmt.Errorf("%s: the reader is not open", f.name)
	}
	return f.positionAt(filestream.Cut{Offset: f.at, Lines: f.past}), nil
}

func (f *file) positionAt(at filestream.Cut) filePosition {
	return filePosition{InputPosition: f.in.Position(at.Offset), Lines: at.Lines}
}

// IndependentOf implements item.Independent: no step changes the file that it reads.
func (f *file) IndependentOf(string) bool { return true }

func (f *file) Close(context.Context) error {
	if f.in == nil {
		return nil
	}
	in := f.in
	f.in = nil
	return in.Close()
}
