package text

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Joins implements itemextra.Joiner.
func (w *writer) Joins() bool { return w.cfg.together }

// JoinParts implements itemextra.Joiner. The trailer has the sums of the parts' records.
func (w *writer) JoinParts(ctx context.Context, at item.Position, parts []item.Position) error {
	joined, err := filestream.JoinedAt(parts)
	if err != nil {
		return w.Named(err)
	}
	var own *filestream.OutputPosition
	if at != nil {
		if err := json.Unmarshal(at, &own); err != nil {
			return w.Named(fmt.Errorf("cannot restart: the stored position is unreadable: %w", err))
		}
	}
	total, err := w.total(parts)
	if err != nil {
		return w.Named(err)
	}
	return w.start(total, func(*filestream.OutputPosition) error { return filestream.Join(ctx, w.Out, own, joined) })
}

func (w *writer) total(parts []item.Position) (item.Position, error) {
	var all writerPosition
	if w.cfg.sums != nil {
		w.cfg.sums.clear()
	}
	for _, part := range parts {
		var at writerPosition
		if part == nil {
			continue
		}
		if err := json.Unmarshal(part, &at); err != nil {
			return nil, fmt.Errorf("the stored position of a part is unreadable: %w", err)
		}
		all.Records += at.Records
		if w.cfg.sums == nil {
			continue
		}
		if err := w.cfg.sums.addAll(at.sumPosition); err != nil {
			return nil, err
		}
	}
	if w.cfg.sums != nil {
		all.sumPosition = w.cfg.sums.position()
	}
	return json.Marshal(all)
}
