package text

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// CannotDivide implements trait.Divisible.
func (c *linesConfig) CannotDivide() error {
	return filestream.CheckDivisible(c.Path, c.Member, c.Compression)
}

// CannotDivide implements trait.Divisible.
func (c *fixedReaderConfig) CannotDivide() error {
	whole := errors.New("headers and trailers belong to records anywhere in the file, so one reader reads it: omit partition")
	if c.Trailer != nil {
		return &registry.ConfigError{Key: "trailer", Err: whole}
	}
	for name, kind := range c.Records {
		if kind.As == string(recordtypes.Header) || kind.As == string(recordtypes.Trailer) {
			return &registry.ConfigError{Key: "records." + name, Err: whole}
		}
	}
	return filestream.CheckDivisible(c.Path, c.Member, c.Compression)
}

func dividedBy(c *fixedReaderConfig) string {
	return fmt.Sprintf("fixed, header %q, header_lines %d, length %d", c.Header, c.HeaderLines, c.Length)
}

// Divide implements filestream.Divider.
func (r *linesReader) Divide(ctx context.Context, want partcount.Wanted) (string, []filestream.Range, error) {
	if err := r.Open(ctx, nil); err != nil {
		return "", nil, err
	}
	return r.divide(ctx, want, func(at filePosition) (item.Position, error) { return json.Marshal(at) })
}

// Divide implements filestream.Divider.
func (r *reader) Divide(ctx context.Context, want partcount.Wanted) (string, []filestream.Range, error) {
	if err := r.Open(ctx, nil); err != nil {
		return "", nil, err
	}
	return r.divide(ctx, want, func(at filePosition) (item.Position, error) {
		return json.Marshal(readerPosition{filePosition: at, Position: r.state.Position()})
	})
}

func (f *file) divide(ctx context.Context, want partcount.Wanted, at func(filePosition) (item.Position, error)) (path string, parts []filestream.Range, err error) {
	defer func() { err = errors.Join(err, f.Close(ctx)) }()
	cuts, err := f.cuts(ctx, filestream.PartsFor(f.in, want))
	if err == nil {
		parts, err = filestream.Ranges(cuts, f.By, func(_ int, c filestream.Cut) (item.Position, error) { return at(f.positionAt(c)) })
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %s: %w", f.name, f.path, err)
	}
	return f.path, parts, nil
}

func (f *file) cuts(ctx context.Context, n int) ([]filestream.Cut, error) {
	from := filestream.Cut{Offset: f.at, Lines: f.past}
	if f.size > 0 {
		return filestream.DivideRecords(f.in, from, n, f.size)
	}
	return filestream.Divide(ctx, f.in, from, n, filestream.Quotes{})
}
