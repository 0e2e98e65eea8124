package route

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func (y *route) joiner() itemextra.Joiner {
	if j, is := y.component.(itemextra.Joiner); is && j.Joins() {
		return j
	}
	return nil
}

// Joins implements itemextra.Joiner.
func (w *writer) Joins() bool {
	return slices.ContainsFunc(w.routes, func(y *route) bool { return y.joiner() != nil })
}

// JoinParts implements itemextra.Joiner. From then on the writer has only the routes that join.
func (w *writer) JoinParts(ctx context.Context, at item.Position, parts []item.Position) error {
	ends := make([]position, len(parts))
	for i, part := range parts {
		var err error
		if ends[i], err = w.parse(part); err != nil {
			return err
		}
	}
	var own position // with the routes that join
	if at != nil {
		if err := json.Unmarshal(at, &own); err != nil {
			return fmt.Errorf("route: cannot restart: the stored position is unreadable: %w", err)
		}
	}
	all := w.routes
	w.routes, w.context = nil, nil // the numbers belong to the parts
	for i, way := range all {
		j := way.joiner()
		if j == nil {
			continue
		}
		from := make([]item.Position, len(ends))
		for k := range ends {
			from[k] = ends[k].of(i)
		}
		place := len(w.routes)
		w.routes, w.opened = append(w.routes, way), place+1
		var mine item.Position
		if place < len(own.Writers) {
			mine = own.of(place)
		}
		if err := j.JoinParts(ctx, mine, from); err != nil {
			return way.failed(err)
		}
	}
	return nil
}
