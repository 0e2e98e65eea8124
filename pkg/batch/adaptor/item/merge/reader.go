package merge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// A step of reader begins with a current row of each side and gives the rows of one left row, or of one
// right row without a left row.
type reader struct {
	*plan
	cfg         config
	left, right *side

	// the right rows with the key of the current left row
	group   [][]row.Value
	grouped bool
	size    int64
	begin   rowPosition
	given   int

	// the start of the current step, and its rows and errors since
	step   position
	events int64
	// events of a step that were given before a restart
	replay int64
	meta   item.Meta
	failed *side
}

// position is the start of a step, and the rows and errors since. Errors among Known outcomes of a side
// after its place were reported.
type position struct {
	Left       rowPosition `json:"left"`
	Right      rowPosition `json:"right"`
	LeftKnown  int64       `json:"left_known,omitempty"`
	RightKnown int64       `json:"right_known,omitempty"`
	Events     int64       `json:"events,omitempty"`
}

// newReader returns a reader of joined rows.
func newReader(ctx context.Context, cfg config, b registry.BuildContext) (item.Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p, err := compile(&cfg)
	if err != nil {
		return nil, err
	}
	if b.Out != nil && b.Out.Schema().SameShape(p.schema) { // the next stage compares schemas by identity first
		p.schema = b.Out.Schema()
	}
	cfg.MaxMemory = cmp.Or(cfg.MaxMemory, defaultMaxMemory)
	r := &reader{plan: p, cfg: cfg}
	positions := true
	for i, nested := range []registry.Nested{cfg.Left, cfg.Right} {
		rows, _, err := registry.MakeNested[item.Reader](ctx, nested, b, nil)
		if err != nil {
			return nil, err
		}
		s := &side{name: []string{"left", "right"}[i], reader: rows, items: rows.NewItems(1), key: p.keys[i]}
		if i == 0 {
			r.left = s
		} else {
			r.right = s
		}
		_, has := rows.Component().(item.Positioner)
		positions = positions && has
	}
	if !positions { // the step counts the rows
		return item.EraseReader[item.Row](r), nil
	}
	return item.EraseReader[item.Row](&positioned{r}), nil
}

type positioned struct{ *reader }

func (r *positioned) Position() (item.Position, error) {
	at := r.step
	at.Events = r.events + r.replay
	return json.Marshal(at)
}

func (r *reader) AcceptChanges() {
	for _, s := range []*side{r.left, r.right} {
		if a, ok := s.reader.Component().(itemextra.ChangesAccepter); ok {
			a.AcceptChanges()
		}
	}
}

func (r *reader) Meta() item.Meta { return r.meta }

func (r *reader) RawText() item.RawText {
	if r.failed != nil {
		if raw, ok := r.failed.reader.Component().(item.RawReader); ok {
			return raw.RawText()
		}
	}
	return item.RawText{}
}

func (r *reader) Open(ctx context.Context, at item.Position) error {
	var pos position
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("merge: cannot restart: the stored position is unreadable: %w", err)
		}
	}
	if err := r.left.open(ctx, pos.Left, pos.LeftKnown); err != nil {
		return err
	}
	if err := r.right.open(ctx, pos.Right, pos.RightKnown); err != nil {
		return err
	}
	r.group, r.grouped, r.size, r.given, r.failed = nil, false, 0, 0, nil
	r.events, r.replay = 0, pos.Events
	r.step = pos
	if at == nil {
		r.step = position{Left: r.left.here(), Right: r.right.here()}
	}
	return nil
}

func (r *reader) IndependentOf(database string) bool {
	return item.IsIndependent(r.left.reader.Component(), database) && item.IsIndependent(r.right.reader.Component(), database)
}

func (r *reader) Close(ctx context.Context) error {
	return errors.Join(r.left.close(ctx), r.right.close(ctx))
}

func (r *reader) Rereads() {}

func (r *reader) Read(ctx context.Context) (item.Row, error) {
	for {
		values, err := r.next(ctx)
		event := err == nil || item.IsConsumed(err)
		if !event {
			return item.Row{}, err
		}
		if r.replay > 0 { // given before the restart
			r.replay--
			r.events++
			continue
		}
		r.events++
		if err != nil {
			return item.Row{}, err
		}
		return row.New(r.schema, values), nil
	}
}

func (r *reader) next(ctx context.Context) ([]row.Value, error) {
	for {
		for _, s := range []*side{r.left, r.right} {
			r.failed = s
			if err := s.fill(ctx); err != nil {
				return nil, err
			}
		}
		r.failed = nil
		order, over := r.order()
		if over {
			return nil, io.EOF
		}
		if r.given == 0 && !r.loading() {
			r.begins(order)
		}
		switch {
		case order > 0: // a right row without a left one
			values := r.joined(nil, r.right.row)
			r.meta = r.right.meta
			r.right.drop()
			if r.cfg.Kind == kindFull {
				return values, nil
			}
		case order < 0 && !r.matches():
			values := r.joined(r.left.row, nil)
			r.meta = r.left.meta
			r.left.drop()
			if r.cfg.Kind == kindFull || r.cfg.Kind == kindLeft {
				return values, nil
			}
		default:
			if values, err := r.pair(ctx); values != nil || err != nil {
				return values, err
			}
		}
	}
}

// less than 0: the left one comes first; over: there are none
func (r *reader) order() (order int, over bool) {
	left, right := r.left.row, r.right.row
	switch {
	case left == nil && right == nil:
		return 0, true
	case r.matches() || right == nil:
		return -1, false
	case left == nil:
		return 1, false
	}
	return r.compare(left, right), false
}

func (r *reader) compare(left, right []row.Value) int {
	for n, i := range r.keys[0] {
		if c := row.Compare(left[i], right[r.keys[1][n]]); c != 0 {
			return c
		}
	}
	return 0
}

func (r *reader) matches() bool {
	return len(r.group) > 0 && r.left.row != nil && r.compare(r.left.row, r.group[0]) == 0
}

func (r *reader) loading() bool { return len(r.group) > 0 && !r.grouped }

func (r *reader) begins(order int) {
	right := r.right.at
	if r.matches() {
		right = r.begin // its rows are read again
	} else if len(r.group) > 0 {
		r.group, r.size, r.grouped = nil, 0, false
	}
	left := r.left.at
	r.step = position{Left: left, Right: right, LeftKnown: r.left.reported(left), RightKnown: r.right.reported(right)}
	r.events = 0
	if order == 0 {
		r.begin = r.right.at
	}
}

// nil means no more rows
func (r *reader) pair(ctx context.Context) ([]row.Value, error) {
	for !r.grouped {
		if r.right.row == nil || r.compare(r.left.row, r.right.row) != 0 {
			r.grouped = true
			break
		}
		if err := r.keep(r.right.row); err != nil {
			return nil, err
		}
		r.right.drop()
		r.failed = r.right
		if err := r.right.fill(ctx); err != nil {
			return nil, err
		}
		r.failed = nil
	}
	if r.given < len(r.group) {
		r.given++
		r.meta = r.left.meta
		return r.joined(r.left.row, r.group[r.given-1]), nil
	}
	r.given = 0
	r.left.drop()
	return nil, nil
}

func (r *reader) keep(values []row.Value) error {
	const perValue = 40
	for _, v := range values {
		r.size += perValue + int64(v.Size())
	}
	if r.size > int64(r.cfg.MaxMemory) {
		return exception.Fatal("merge", fmt.Errorf("%s: the right rows with the key %s take more than max_memory, %d bytes", r.right.meta, r.right.shown(values), int64(r.cfg.MaxMemory)))
	}
	r.group = append(r.group, values)
	return nil
}

// a nil side has nulls
func (r *reader) joined(left, right []row.Value) []row.Value {
	values := make([]row.Value, r.schema.Len())
	copy(values, left)
	for n, i := range r.rest {
		if right != nil {
			values[r.plan.left+n] = right[i]
		}
	}
	if left == nil {
		for n, i := range r.keys[0] {
			values[i] = right[r.keys[1][n]]
		}
	}
	return values
}
