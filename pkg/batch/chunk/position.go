package chunk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// positionVersion is the format of a stored position; a newer one is refused.
const positionVersion = 1

// position is where a chunk step stands: what is stored with every commit.
type position struct {
	Version int `json:"v"`
	// Reader is the reader's own position; Items is the number of its outcomes after
	// that which have a verdict, all of them where the reader has no position.
	Reader  json.RawMessage   `json:"reader,omitempty"`
	Items   int64             `json:"items,omitempty"`
	Writers []json.RawMessage `json:"writers,omitempty"`
}

func parsePosition(at core.Position) (position, error) {
	var p position
	if len(at) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(at, &p); err != nil {
		return p, fmt.Errorf("stored position: %w", err)
	}
	if p.Version != positionVersion {
		return p, fmt.Errorf("stored position: format version %d, but this binary knows %d", p.Version, positionVersion)
	}
	return p, nil
}

func (p *position) setWriter(i int, at core.Position) {
	for len(p.Writers) <= i {
		p.Writers = append(p.Writers, json.RawMessage("null"))
	}
	p.Writers[i] = at.JSON()
}

// writer is the position of writer i, nil where it had none.
func (p *position) writer(i int) core.Position {
	if i >= len(p.Writers) {
		return nil
	}
	return stored(p.Writers[i])
}

func (p position) encode() (core.Position, error) {
	p.Version = positionVersion
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("position: a component's position must be JSON: %w", err)
	}
	if len(data) > core.MaxPositionBytes {
		return nil, fmt.Errorf("position: %d bytes, allowed are %d (rule D4)", len(data), core.MaxPositionBytes)
	}
	return data, nil
}

// stored is what a component gets back at Open: nil where it had no position.
func stored(raw json.RawMessage) core.Position {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return core.Position(raw)
}

// WriterPositions returns the positions of the writers in a stored position of a
// chunk step; nil where it is none.
func WriterPositions(at core.Position) []core.Position {
	p, err := parsePosition(at)
	if err != nil {
		return nil
	}
	list := make([]core.Position, len(p.Writers))
	for i := range list {
		list[i] = p.writer(i)
	}
	return list
}

// AttemptOf tells a writer in which attempt of the run it works (registry.BuildContext.Attempt):
// as run.Attempt, with the positions of writers in Left and From. It is asked before
// the first commit.
func AttemptOf(run *core.StepRun) func(ctx context.Context) (core.Attempt, error) {
	return func(ctx context.Context) (core.Attempt, error) {
		a, err := run.Attempt(ctx)
		var left []core.Position
		for _, at := range a.Left {
			left = append(left, WriterPositions(at)...)
		}
		a.Left, a.From = left, WriterPositions(run.Step.Position)
		return a, err
	}
}
