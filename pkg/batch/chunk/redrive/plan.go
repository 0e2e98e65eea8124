package redrive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// pageSize is the number of stored items that one statement reads.
const pageSize = 200

// Request asks for a plan.
type Request struct {
	Execution core.JobExecutionID
	// Step is the step whose items are redriven; empty: the only one that has any.
	Step string
	// Edited are items by the number of their skip, as JSON: only these are
	// redriven. nil: all that are left, as they are stored.
	Edited map[int64]json.RawMessage
}

// Plan says what a redrive will do.
type Plan struct {
	Request
	// Items is the number of items to redrive.
	Items int
	// Refused are the items that are left but cannot be redriven as they are stored.
	Refused []Refusal

	items Items
}

// Items stores skipped items and checkpoints: a core.JobRepository.
type Items interface {
	core.SkippedItems
	Database() string
}

// Database returns the name of the skipped items' database, in which their step must
// write.
func (p *Plan) Database() string { return p.items.Database() }

// Refusal is an item that cannot be redriven, and why.
type Refusal struct {
	Item   core.SkippedItem
	Reason string
}

// Error names the item.
func (r Refusal) Error() string { return fmt.Sprintf("skipped item %d: %s", r.Item.ID, r.Reason) }

// ErrNothing says that there is nothing left to redrive.
var ErrNothing = errors.New("no skipped items are left to redrive")

// StepsError asks which step is meant: a redrive runs one.
type StepsError struct{ Steps []string }

// Error lists the steps.
func (e *StepsError) Error() string {
	return "skipped items of more than one step are left: " + strings.Join(e.Steps, ", ")
}

// New returns the plan of a redrive of the items that are left. Its error names all edited
// items that are not left, are of another step or are not whole.
func New(ctx context.Context, items Items, request Request) (*Plan, error) {
	p := &Plan{Request: request, items: items}
	missing := maps.Clone(request.Edited)
	steps := map[string]bool{}
	var errs []error
	err := p.each(ctx, 0, func(s core.SkippedItem) error {
		if request.Edited != nil {
			if _, ok := request.Edited[s.ID]; !ok {
				return nil
			}
			delete(missing, s.ID)
		}
		steps[s.Step] = true
		reason := p.refuse(s)
		switch {
		case reason == "":
			p.Items++
		case request.Edited != nil:
			errs = append(errs, Refusal{s, reason})
		default:
			p.Refused = append(p.Refused, Refusal{s, reason})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		why, err := p.absent(ctx, id)
		if err != nil {
			return nil, err
		}
		errs = append(errs, why)
	}
	switch {
	case len(errs) > 0:
		return nil, errors.Join(errs...)
	case len(steps) > 1:
		return nil, &StepsError{slices.Sorted(maps.Keys(steps))}
	case len(steps) == 0:
		return nil, ErrNothing
	}
	p.Step = slices.Collect(maps.Keys(steps))[0]
	return p, nil
}

// absent returns why an edited item is not among those that are left.
func (p *Plan) absent(ctx context.Context, id int64) (why, err error) {
	s, err := p.items.SkippedItem(ctx, id)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return fmt.Errorf("skipped item %d: there is none of this number", id), nil
	case err != nil:
		return nil, err
	case s.JobExecutionID != p.Execution:
		return fmt.Errorf("skipped item %d: it is of execution %d", id, s.JobExecutionID), nil
	case s.RedrivenBy != 0:
		return fmt.Errorf("skipped item %d: execution %d has redriven it", id, s.RedrivenBy), nil
	}
	return fmt.Errorf("skipped item %d: it is of step %s", id, s.Step), nil
}

// refuse returns why an item cannot be redriven; "" if it can.
func (p *Plan) refuse(s core.SkippedItem) string {
	if text, ok := p.Edited[s.ID]; ok {
		switch {
		case isNull(text):
			return "the file does not give the item"
		case s.Truncated && same(text, s.Item):
			return "the file gives it as it is stored, and that is not the whole item"
		}
		return ""
	}
	switch {
	case s.Phase == core.PhaseRead, isNull(s.Item):
		return "its read failed, so there is no item"
	case s.Truncated && s.SHA256 != "":
		return fmt.Sprintf("it is longer than %d bytes and was cut when it was stored", item.MaxPayloadBytes)
	case s.Truncated:
		return "it was not stored whole: fields of it are hidden, or it has no JSON form"
	}
	return ""
}

func isNull(text json.RawMessage) bool {
	return len(text) == 0 || bytes.Equal(bytes.TrimSpace(text), []byte("null"))
}

// same reports whether both are the same JSON but for blanks.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// each calls f with the items that are left and have a greater id than after, in order.
func (p *Plan) each(ctx context.Context, after int64, f func(s core.SkippedItem) error) error {
	for {
		page, err := p.page(ctx, after)
		if err != nil {
			return err
		}
		for _, s := range page {
			if err := f(s); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

func (p *Plan) page(ctx context.Context, after int64) ([]core.SkippedItem, error) {
	page, err := p.items.SkippedItems(ctx, core.SkipFilter{
		Execution: p.Execution, Step: p.Step, Left: true, After: after, Limit: pageSize,
	})
	if err != nil {
		return nil, fmt.Errorf("read the skipped items of execution %d: %w", p.Execution, err)
	}
	return page, nil
}

// document is the JSON of an item that is to be redriven; false for the others.
func (p *Plan) document(s core.SkippedItem) ([]byte, bool) {
	if p.Edited == nil {
		return s.Item, p.refuse(s) == ""
	}
	text, ok := p.Edited[s.ID]
	return text, ok
}
