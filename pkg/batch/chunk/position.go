package chunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// The formats of a stored position; a newer one is refused. The format with positions of processors
// must be refused by a binary that would open them without.
const (
	positionVersion   = 1
	processorsVersion = 2
)

// position is the position of a chunk step, which is stored with every commit.
type position struct {
	Version int `json:"v"`
	// Reader is the reader's own position. Items is the number of its later outcomes that have a
	// verdict; all of them if the reader has no position.
	Reader  json.RawMessage   `json:"reader,omitempty"`
	Items   int64             `json:"items,omitempty"`
	Writers []json.RawMessage `json:"writers,omitempty"`
	// Bound are the hashes of Parts.Bound.
	Bound []string `json:"bound,omitempty"`
	// Processors are the positions of the processors that have one (rule C4a).
	Processors []json.RawMessage `json:"processors,omitempty"`
}

func parsePosition(at item.Position) (position, error) {
	var p position
	if len(at) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(at, &p); err != nil {
		return p, fmt.Errorf("stored position: %w", err)
	}
	if p.Version != positionVersion && p.Version != processorsVersion {
		return p, fmt.Errorf("stored position: format version %d, but this binary supports versions up to %d", p.Version, processorsVersion)
	}
	return p, nil
}

func (p *position) setWriter(i int, at item.Position) {
	for len(p.Writers) <= i {
		p.Writers = append(p.Writers, json.RawMessage("null"))
	}
	p.Writers[i] = at.JSON()
}

func (p *position) writer(i int) item.Position {
	if i >= len(p.Writers) {
		return nil
	}
	return stored(p.Writers[i])
}

func (p *position) processor(i int) item.Position {
	if i >= len(p.Processors) {
		return nil
	}
	return stored(p.Processors[i])
}

func (p position) encode() (item.Position, error) {
	p.Version = positionVersion
	if len(p.Processors) > 0 {
		p.Version = processorsVersion
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("position: a component's position must be JSON: %w", err)
	}
	if len(data) > ports.MaxPositionBytes {
		return nil, fmt.Errorf("position: %d bytes, more than the allowed %d (rule D4)", len(data), ports.MaxPositionBytes)
	}
	return data, nil
}

// stored returns a component's position in the form for Open: nil if it had none.
func stored(raw json.RawMessage) item.Position {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return item.Position(raw)
}

// ParseMark parses the position of a chunk step, or the mark of a skipped item, which has the same
// form. outcomes is the number of reader outcomes (items and failed reads) after the reader's own
// position, which is nil if it has none.
func ParseMark(at item.Position) (reader item.Position, outcomes int64, err error) {
	p, err := parsePosition(at)
	if err != nil {
		return nil, 0, err
	}
	return stored(p.Reader), p.Items, nil
}

// FromStart returns the position at which a chunk step reads from the start of its input while its
// processors and writers continue at their positions: for a reader of the remaining work. It is nil if
// at has no positions of them.
func FromStart(at item.Position) (item.Position, error) {
	p, err := parsePosition(at)
	if err != nil || len(p.Writers) == 0 && len(p.Processors) == 0 {
		return nil, err
	}
	rest := position{Writers: p.Writers, Processors: p.Processors, Bound: slices.Clone(p.Bound)}
	if len(rest.Bound) > 0 {
		rest.Bound[0] = "" // of the reader
	}
	return rest.encode()
}

// WriterPositions returns the positions of the writers in a stored position of a chunk step, including
// nested ones; nil if at is not one.
func WriterPositions(at item.Position) []item.Position {
	p, err := parsePosition(at)
	if err != nil {
		return nil
	}
	list := make([]item.Position, 0, len(p.Writers))
	for i := range p.Writers {
		list = append(list, itemextra.InnerPositions(p.writer(i))...)
	}
	return list
}

// PreviousOf returns the function with the reader's last position in the newest complete instance
// before this one; nil if there is none.
func PreviousOf(run *model.StepRun) func(ctx context.Context) (item.Position, error) {
	return func(ctx context.Context) (item.Position, error) {
		if step, part, is := strings.Cut(run.Step.Name, ":"); is {
			return nil, fmt.Errorf("partition %s of step %s: the previous instance may have had other partitions, so its position does not show what they have read", part, step)
		}
		at, err := run.Services.Attempts.LastCompleted(ctx, run.Data.Job.JobName, run.Step.Name, run.Data.Job.InstanceID)
		if errors.Is(err, model.ErrNoService) {
			return nil, nil // a sample has no history
		}
		if err != nil {
			return nil, err
		}
		p, err := parsePosition(at)
		return stored(p.Reader), err
	}
}

// AttemptOf returns the function that describes the attempt to a writer: run.Attempt, with the
// positions of writers in Left and From. Call it before the first commit.
func AttemptOf(run *model.StepRun) func(ctx context.Context) (core.Attempt, error) {
	return func(ctx context.Context) (core.Attempt, error) {
		a, err := run.Attempt(ctx)
		var left []item.Position
		for _, at := range a.Left {
			left = append(left, WriterPositions(at)...)
		}
		a.Left, a.From = left, WriterPositions(run.Step.Position)
		return a, err
	}
}
