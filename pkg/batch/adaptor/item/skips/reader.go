package skips

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const pageSize = 500

// reader reads skipped items. Not for concurrent use.
type reader struct {
	from   ports.SkipReader
	filter ports.SkipFilter
	schema *row.Schema

	at   position
	page []core.SkippedItem
	last bool
}

type position struct {
	// After is the last skip that was read, UpTo the last one to read.
	After int64 `json:"after"`
	UpTo  int64 `json:"up_to"`
	Read  int64 `json:"read"`
}

// newReader makes a reader of the skips of this instance, or of the configured one. A nil from means no skips.
func newReader(from ports.SkipReader, instance core.JobInstanceID, cfg config) (*reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	schema, err := row.NewSchema(fields()...)
	if err != nil {
		return nil, err
	}
	filter := ports.SkipFilter{Job: cfg.Job, Instance: core.JobInstanceID(cfg.Instance), Step: cfg.Step, Parts: true, Phase: core.Phase(cfg.Phase), Left: cfg.Left, Limit: pageSize}
	if cfg.Job == "" && cfg.Instance == 0 {
		filter.Instance = instance
	}
	return &reader{from: from, filter: filter, schema: schema}, nil
}

// Open goes to the position. At the start it finds the last skip to read.
func (r *reader) Open(ctx context.Context, at item.Position) error {
	r.at, r.page, r.last = position{}, nil, false
	if len(at) > 0 {
		if err := json.Unmarshal(at, &r.at); err != nil {
			return fmt.Errorf("skips: cannot restart: the stored position is unreadable: %w", err)
		}
		return nil
	}
	if r.from == nil {
		return nil
	}
	var err error
	r.at.UpTo, err = r.from.LastSkipped(ctx, r.filter)
	if errors.Is(err, model.ErrNoService) { // a sample, which has no history
		err = nil
	}
	if err != nil {
		return fmt.Errorf("skips: %w", err)
	}
	return nil
}

// Schema has the fields of a skip.
func (r *reader) Schema() *row.Schema { return r.schema }

// Meta returns the ordinal of the last skip.
func (r *reader) Meta() item.Meta { return item.Meta{Line: r.at.Read} }

// ReadRecord reads the next skip.
func (r *reader) ReadRecord(ctx context.Context, dst []row.Value) error {
	if len(r.page) == 0 {
		if err := r.fetch(ctx); err != nil {
			return err
		}
	}
	s := r.page[0]
	if s.Unreadable != nil {
		return fmt.Errorf("skips: %w", s.Unreadable)
	}
	r.page = r.page[1:]
	r.at.After, r.at.Read = s.ID, r.at.Read+1
	record(&s, dst)
	return nil
}

func (r *reader) fetch(ctx context.Context) error {
	if r.last || r.at.After >= r.at.UpTo {
		return io.EOF
	}
	filter := r.filter
	filter.After, filter.UpTo = r.at.After, r.at.UpTo
	page, err := r.from.SkippedItems(ctx, filter)
	if err != nil {
		return fmt.Errorf("skips: %w", err)
	}
	r.page, r.last = page, len(page) < pageSize
	if len(page) == 0 {
		return io.EOF
	}
	return nil
}

func record(s *core.SkippedItem, dst []row.Value) {
	whole, raw := s.Whole()
	values := []row.Value{
		row.IntValue(s.ID), row.IntValue(int64(s.JobExecutionID)), row.StringValue(s.Step), row.StringValue(string(s.Phase)),
		text(s.Meta.Path), number(s.Meta.Line), number(s.Meta.Index), number(s.Meta.Row),
		row.StringValue(s.Class), row.StringValue(s.Error), text(string(whole)), {}, number(int64(s.RedrivenBy)), row.TimestampValue(s.CreatedAt),
	}
	copy(dst, values)
	if raw != nil {
		dst[rawField] = row.StringValue(*raw)
	}
}

const rawField = 11

func text(s string) row.Value {
	if s == "" {
		return row.Value{}
	}
	return row.StringValue(s)
}

func number(n int64) row.Value {
	if n == 0 {
		return row.Value{}
	}
	return row.IntValue(n)
}

// Mark is the reader's position: others may store or purge skips before it.
func (r *reader) Mark() any { return r.at }

// PositionAt returns the position after the skip of the mark.
func (r *reader) PositionAt(m any) (item.Position, error) {
	at, ok := m.(position)
	if !ok {
		return nil, fmt.Errorf("skips: a %T is not a mark of this reader", m)
	}
	return json.Marshal(at)
}

// Position contains the last skip to read, so that a restart reads no later ones.
func (r *reader) Position() (item.Position, error) { return r.PositionAt(r.at) }
