package jsonfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Divide implements filestream.Divider, for lines.
func (r *Reader) Divide(ctx context.Context, want partcount.Wanted) (path string, parts []filestream.Range, err error) {
	if err := r.Open(ctx, nil); err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	cuts, err := filestream.Divide(ctx, r.in, filestream.Cut{Offset: r.at.Offset, Lines: r.at.Lines}, filestream.PartsFor(r.in, want), filestream.Quotes{})
	if err == nil {
		parts, err = filestream.Ranges(cuts, r.By, func(_ int, c filestream.Cut) (item.Position, error) {
			return json.Marshal(position{InputPosition: r.in.Position(c.Offset), Lines: c.Lines})
		})
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %s: %w", r.cfg.Name, r.path, err)
	}
	return r.path, parts, nil
}
