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
	// Partly plans without the edited items that cannot be redriven.
	Partly bool
}

// Edit corrects a skipped item: the item, or its text. Without both it is as stored.
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
	ids    []int64          // of Edited, sorted
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
	p := &Plan{Request: request, items: items, ids: slices.Sorted(maps.Keys(request.Edited)), counts: map[string]count{}}
	steps, found := map[string]bool{}, map[int64]bool{}
	err := p.each(ctx, func(s core.SkippedItem) error {
		found[s.ID] = true
		steps[p.stepOf(s)] = true
		given, reason := p.redriven(s)
		if reason != "" {
			p.Refused = append(p.Refused, Refusal{s, reason})
			return nil
		}
		n := p.counts[s.Step]
		n.items++
		if given.raw != nil {
			n.texts++
		}
		p.counts[s.Step] = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range p.ids {
		if found[id] {
			continue
		}
		why, err := p.absent(ctx, id)
		if err != nil {
			return nil, err
		}
		p.Refused = append(p.Refused, why)
	}
	switch {
	case request.Edited != nil && !request.Partly && len(p.Refused) > 0:
		var errs []error
		for _, r := range p.Refused {
			if by := r.Item.RedrivenBy; by != 0 {
				errs = append(errs, &DoneError{r.Item.ID, by})
				continue
			}
			errs = append(errs, r)
		}
		return nil, errors.Join(errs...)
	case len(steps) > 1:
		return nil, &StepsError{slices.Sorted(maps.Keys(steps))}
	case len(steps) == 1:
		p.Step = slices.Collect(maps.Keys(steps))[0]
	case len(p.Refused) == 0:
		return nil, ErrNothing
	}
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

func (p *Plan) stepOf(s core.SkippedItem) string {
	if strings.Contains(p.Request.Step, partMark) {
		return p.Request.Step
	}
	return stepOf(s.Step)
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

func (p *Plan) absent(ctx context.Context, id int64) (why Refusal, err error) {
	s, err := p.items.SkippedItem(ctx, id)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return Refusal{core.SkippedItem{ID: id}, "not found"}, nil
	case err != nil:
		return why, err
	case s.JobExecutionID != p.Execution:
		return Refusal{*s, fmt.Sprintf("it belongs to execution %d", s.JobExecutionID)}, nil
	case s.RedrivenBy != 0:
		return Refusal{*s, fmt.Sprintf("execution %d has redriven it", s.RedrivenBy)}, nil
	}
	return Refusal{*s, "it belongs to step " + s.Step}, nil
}

type given struct {
	document []byte
	raw      *item.RawText
}

func (p *Plan) redriven(s core.SkippedItem) (of given, refused string) {
	if edit := p.Edited[s.ID]; edit.Raw != nil || !isNull(edit.Item) {
		return edited(s, edit)
	}
	switch {
	case s.Unreadable != nil:
		return of, s.Unreadable.Error()
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

func (p *Plan) each(ctx context.Context, f func(s core.SkippedItem) error) error {
	c := cursor{plan: p}
	for !c.end {
		page, err := c.page(ctx)
		if err != nil {
			return err
		}
		for _, s := range page {
			if err := f(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// cursor reads the items of a plan page by page, and nothing else.
type cursor struct {
	plan *Plan
	last int64
	end  bool
}

func (c *cursor) page(ctx context.Context) ([]core.SkippedItem, error) {
	p := c.plan
	filter := ports.SkipFilter{
		Execution: p.Execution, Step: p.Step, Parts: p.Step != "" && !strings.Contains(p.Step, partMark), Left: true, After: c.last, Limit: pageSize,
	}
	if p.Edited != nil {
		at, _ := slices.BinarySearch(p.ids, c.last+1)
		filter.IDs = p.ids[at:min(at+pageSize, len(p.ids))]
		if c.end = at+pageSize >= len(p.ids); len(filter.IDs) == 0 {
			return nil, nil
		}
		c.last = filter.IDs[len(filter.IDs)-1]
	}
	page, err := p.items.SkippedItems(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("read the skipped items of execution %d: %w", p.Execution, err)
	}
	if p.Edited == nil {
		if c.end = len(page) < pageSize; len(page) > 0 {
			c.last = page[len(page)-1].ID
		}
	}
	return page, nil
}

func (p *Plan) selected(s core.SkippedItem) (given, bool) {
	of, refused := p.redriven(s)
	return of, refused == ""
}
