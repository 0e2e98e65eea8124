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

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const pageSize = 200

// Request requests a plan.
type Request struct {
	Execution core.JobExecutionID
	// Step is STEP, with all partitions, or STEP:PARTITION; empty means the only one with items.
	Step string
	// Edited are the redriven items by skip number; nil means all that are left.
	Edited map[int64]Edit
}

// Edit corrects a skipped item: the item, or its text.
type Edit struct {
	Item json.RawMessage `json:"item,omitempty"`
	// Raw is the text, read again by the step's reader; nil means none.
	Raw *string `json:"raw,omitempty"`
}

// Plan is the plan of a redrive.
type Plan struct {
	Request
	Items, Texts int
	// Parts are the partitions with items, sorted; nil means Step itself.
	Parts   []string
	Refused []Refusal

	items  Items
	counts map[string]count // by recorded name
}

type count struct{ items, texts int }

// Items stores skipped items and checkpoints: a ports.Repository.
type Items interface {
	ports.Skips
	Database() string
}

// Database returns the database of the skipped items, in which their step must
// write.
func (p *Plan) Database() string { return p.items.Database() }

// Refusal is an item that cannot be redriven, with the reason.
type Refusal struct {
	Item   core.SkippedItem
	Reason string
}

// Error names the item.
func (r Refusal) Error() string { return fmt.Sprintf("skipped item %d: %s", r.Item.ID, r.Reason) }

// DoneError is a ports.ErrRedriven that names the item and the execution.
type DoneError struct {
	Item int64
	By   core.JobExecutionID
}

func (e *DoneError) Error() string {
	return fmt.Sprintf("skipped item %d: execution %d has redriven it", e.Item, e.By)
}

func (e *DoneError) Unwrap() error { return ports.ErrRedriven }

// ErrNothing means that nothing is left to redrive.
var ErrNothing = errors.New("no skipped items are left to redrive")

// StepsError asks for one of several steps: a redrive runs one.
type StepsError struct{ Steps []string }

// Error lists the steps.
func (e *StepsError) Error() string {
	return "skipped items of more than one step are left: " + strings.Join(e.Steps, ", ")
}

// Nothing returns a plan without items: it completes an earlier redrive's commits.
func Nothing(items Items, execution core.JobExecutionID, step string, parts []string) *Plan {
	return &Plan{Request: Request{Execution: execution, Step: step}, Parts: parts, items: items}
}

// New returns the plan; the error names all edited items that are not left, of another step or
// incomplete.
func New(ctx context.Context, items Items, request Request) (*Plan, error) {
	p := &Plan{Request: request, items: items, counts: map[string]count{}}
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
		if strings.Contains(request.Step, partMark) {
			steps[request.Step] = true
		} else {
			steps[stepOf(s.Step)] = true
		}
		given, reason := p.redriven(s)
		switch {
		case reason == "":
			n := p.counts[s.Step]
			n.items++
			if given.raw != nil {
				n.texts++
			}
			p.counts[s.Step] = n
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
	for name, n := range p.counts {
		p.Items += n.items
		p.Texts += n.texts
		if name != p.Step {
			p.Parts = append(p.Parts, name)
		}
	}
	slices.Sort(p.Parts)
	return p, nil
}

const partMark = ":"

func stepOf(recorded string) string {
	step, _, _ := strings.Cut(recorded, partMark)
	return step
}

// Of returns the plan of one of the Parts.
func (p *Plan) Of(part string) *Plan {
	of := *p
	of.Step, of.Parts = part, nil
	of.Items, of.Texts = p.counts[part].items, p.counts[part].texts
	return &of
}

// Only restricts the plan to some Parts, and returns the number left out.
func (p *Plan) Only(parts []string) (left int) {
	for name, n := range p.counts {
		if !slices.Contains(parts, name) {
			left += n.items
			delete(p.counts, name)
			p.Items, p.Texts = p.Items-n.items, p.Texts-n.texts
		}
	}
	p.Parts = parts
	return left
}

func (p *Plan) absent(ctx context.Context, id int64) (why, err error) {
	s, err := p.items.SkippedItem(ctx, id)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return fmt.Errorf("skipped item %d: not found", id), nil
	case err != nil:
		return nil, err
	case s.JobExecutionID != p.Execution:
		return fmt.Errorf("skipped item %d: it belongs to execution %d", id, s.JobExecutionID), nil
	case s.RedrivenBy != 0:
		return &DoneError{id, s.RedrivenBy}, nil
	}
	return fmt.Errorf("skipped item %d: it belongs to step %s", id, s.Step), nil
}

type given struct {
	document []byte
	raw      *item.RawText
}

func (p *Plan) redriven(s core.SkippedItem) (of given, refused string) {
	if edit, ok := p.Edited[s.ID]; ok {
		return edited(s, edit)
	}
	switch {
	case s.Masked:
		return of, "a secret in it was masked when it was stored: provide the original item in the file of an export"
	case s.Raw != nil && !s.Truncated:
		return given{raw: s.Raw}, ""
	case s.Raw != nil && s.Raw.IsHidden():
		return of, "it could not be read, and its text is not stored, because fields of the item are hidden"
	case s.Raw != nil:
		return of, fmt.Sprintf("it could not be read, and its text is not stored completely: it is longer than %d bytes, or not valid UTF-8", item.MaxPayloadBytes)
	case s.Phase == core.PhaseRead, isNull(s.Item):
		return of, "it could not be read, so there is no item"
	case s.Truncated && s.SHA256 != "":
		return of, fmt.Sprintf("it is longer than %d bytes and was cut when it was stored", item.MaxPayloadBytes)
	case s.Truncated:
		return of, "it was not stored completely: some of its fields are hidden, or it cannot be written as JSON"
	}
	return given{document: s.Item}, ""
}

func edited(s core.SkippedItem, edit Edit) (of given, refused string) {
	asStored := edit.Raw != nil && s.Raw != nil && *edit.Raw == s.Raw.Text
	switch {
	case !isNull(edit.Item) && edit.Raw != nil && !asStored:
		return of, "the file has both the item and a changed text: remove one of them"
	case !isNull(edit.Item) && s.Masked && same(edit.Item, s.Item):
		return of, "the file has the stored item, in which a secret was masked"
	case !isNull(edit.Item) && s.Truncated && same(edit.Item, s.Item):
		return of, "the file has the stored item, which is incomplete"
	case !isNull(edit.Item):
		return given{document: edit.Item}, ""
	case edit.Raw == nil:
		return of, "the file does not have the item"
	case s.Raw == nil:
		return of, "the file has a text, but no text was read: provide the item"
	case asStored && s.Masked:
		return of, "the file has the stored text, in which a secret was masked"
	case asStored && s.Truncated:
		return of, "the file has the stored text, which is incomplete"
	}
	raw := *s.Raw
	raw.Text = *edit.Raw
	return given{raw: &raw}, ""
}

func isNull(text json.RawMessage) bool {
	return len(text) == 0 || bytes.Equal(bytes.TrimSpace(text), []byte("null"))
}

func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

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
	page, err := p.items.SkippedItems(ctx, ports.SkipFilter{
		Execution: p.Execution, Step: p.Step, Parts: p.Step != "" && !strings.Contains(p.Step, partMark), Left: true, After: after, Limit: pageSize,
	})
	if err != nil {
		return nil, fmt.Errorf("read the skipped items of execution %d: %w", p.Execution, err)
	}
	return page, nil
}

func (p *Plan) selected(s core.SkippedItem) (given, bool) {
	if _, ok := p.Edited[s.ID]; p.Edited != nil && !ok {
		return given{}, false
	}
	of, refused := p.redriven(s)
	return of, refused == ""
}
