package csv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// CannotDivide implements trait.Divisible.
func (c *readerConfig) CannotDivide() error {
	if c.Records != nil {
		return &registry.ConfigError{Key: "records", Err: errors.New("a file with several record types is read by one reader, since headers and trailers belong to records anywhere: omit partition")}
	}
	return filestream.CheckDivisible(c.Path, c.Member, c.Compression)
}

// Divide implements filestream.Divider.
func (r *reader) Divide(ctx context.Context, want partcount.Wanted) (path string, parts []filestream.Range, err error) {
	if err := r.Open(ctx, nil); err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	cuts, err := cutsOf(ctx, r, filestream.PartsFor(r.in, want))
	if err == nil {
		parts, err = filestream.Ranges(cuts, r.By, func(k int, at filestream.Cut) (item.Position, error) {
			if k == 0 { // it finds the width itself: records before the one that decides may be too short
				return positionAt(r, at, 0)
			}
			return positionAt(r, at, r.width)
		})
	}
	if err != nil {
		return "", nil, fmt.Errorf("csv: %s: %w", r.cfg.Path, err)
	}
	return r.cfg.Path, parts, nil
}

func dividedBy(c *readerConfig) string {
	return fmt.Sprintf("csv, header %s, delimiter %q, quote %q, escape %q, comment %q, lazy_quotes %t, trim %t, skip_lines %d, footer_lines %d, max_line %d",
		c.Header, c.Delimiter, c.Quote, c.Escape, c.Comment, c.LazyQuotes, c.Trim, c.SkipLines, c.FooterLines, c.MaxLine)
}

func cutsOf(ctx context.Context, r *reader, n int) ([]filestream.Cut, error) {
	from := filestream.Cut{Offset: r.next, Lines: r.lines}
	quotes, simple := quotesOf(r)
	if simple {
		cuts, err := filestream.Divide(ctx, r.in, from, n, quotes)
		if !errors.Is(err, filestream.ErrMalformed) {
			if err == nil {
				err = r.learnWidth(ctx, math.MaxInt64)
			}
			return cuts, err
		}
	}
	return cutByReading(ctx, r, from, n)
}

func quotesOf(r *reader) (q filestream.Quotes, simple bool) {
	s := &r.csv
	if s.cr || s.runs || len(s.comment) > 0 {
		return q, false
	}
	if s.quote == 0 {
		return q, true
	}
	return filestream.Quotes{Quote: s.quote, Comma: s.comma[0], Longest: int64(r.cfg.MaxLine)}, len(s.comma) == 1 && s.escape == 0 && !s.trim
}

func cutByReading(ctx context.Context, r *reader, from filestream.Cut, n int) ([]filestream.Cut, error) {
	cuts := []filestream.Cut{from}
	for k := 1; ; {
		_, err := r.record(ctx)
		switch {
		case errors.Is(err, io.EOF):
			size, _ := r.in.Size()
			return append(cuts, filestream.Cut{Offset: size, Lines: r.lines}), nil
		case err == nil:
			_ = r.checkWidth(len(r.csv.fields)) //nolint:errcheck // the part that has the record says so
		case !item.IsConsumed(err):
			return nil, err
		}
		passed := k
		for k < n && r.next >= filestream.Share(r.in, from, k, n) {
			k++
		}
		if k > passed {
			cuts = append(cuts, filestream.Cut{Offset: r.next, Lines: r.lines})
		}
	}
}
