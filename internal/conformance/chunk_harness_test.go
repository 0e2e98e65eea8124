package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type entry struct {
	Place int
	Value string
}

// product is the processor's result for an entry: a pointer, so that a writer that changes its input would be
// noticed.
type product struct {
	entry
	used bool
}

type record struct {
	faults *faults

	mu           sync.Mutex
	started      bool
	resumeAt     int
	readCalls    int
	readItems    []string
	processCalls []string
	writeCalls   [][]string
	touched      []string
	stream       []string
	calls        map[string]int
	items        map[string][]string
	trail        []string
}

func newRecord(list []fault) *record {
	return &record{faults: newFaults(list), calls: map[string]int{}, items: map[string][]string{}}
}

func (r *record) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// reader delivers the items. It has no position.
type reader struct {
	*record
	list []string
	next int
}

func (r *reader) Read(context.Context) (entry, error) {
	r.note(func() { r.readCalls++ })
	call := r.faults.visit(phaseRead, "calls")
	if r.next >= len(r.list) {
		return entry{}, io.EOF
	}
	e := entry{r.next, r.list[r.next]}
	if err := r.faults.raise(occasion{where: phaseRead, call: call, value: e.Value, attempt: r.faults.visit(phaseRead, e.Place)}); err != nil {
		return entry{}, err
	}
	r.next++
	r.note(func() { r.readItems = append(r.readItems, e.Value) })
	return e, nil
}

func (r *reader) SkipItem(context.Context) error {
	if r.next >= len(r.list) {
		return errors.New("there is no item to step over")
	}
	r.next++
	return nil
}

func (r *reader) Meta() item.Meta { return item.Meta{Path: "items", Line: int64(r.next)} }

type positioned struct{ *reader }

func (r *positioned) Open(_ context.Context, at item.Position) error {
	r.note(func() { r.stream = append(r.stream, "open") })
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r *positioned) Position() (item.Position, error) {
	r.note(func() { r.stream = append(r.stream, "update") })
	return json.Marshal(r.next)
}

func (r *positioned) Close(context.Context) error {
	r.note(func() { r.stream = append(r.stream, "close") })
	return nil
}

type processor struct {
	*record
	filters []string
	pure    bool // no fault happens to it, and its calls are not compared
}

func (p *processor) IndependentOf(string) bool { return p.pure }

func (p *processor) Process(_ context.Context, e entry) (*product, error) {
	p.note(func() { p.processCalls = append(p.processCalls, e.Value) })
	at := occasion{
		where: phaseProcess, value: e.Value,
		call: p.faults.visit(phaseProcess, "calls"), attempt: p.faults.visit(phaseProcess, e.Place),
	}
	if err := p.faults.raise(at); err != nil {
		return nil, err
	}
	if slices.Contains(p.filters, e.Value) {
		return nil, item.ErrFilter
	}
	return &product{entry: e}, nil
}

// writer inserts a row per item in the transaction of ctx. A fault is raised after the row of its item, so
// that a rollback has something to undo.
type writer struct {
	*record
	database tx.Database
	insert   string
	fresh    bool // each write is of products that no write has seen
}

func (w *writer) Write(ctx context.Context, items []*product) error {
	current, ok := tx.From(ctx, w.database.Name())
	if !ok {
		return errors.New("the writer was called outside of a transaction")
	}
	var batch []string
	for _, p := range items {
		batch = append(batch, p.Value)
	}
	w.note(func() { w.writeCalls = append(w.writeCalls, batch) })
	call := w.faults.visit(phaseWrite, "calls")
	for _, p := range items {
		if p.used && w.fresh {
			return fmt.Errorf("item %s was not processed again after a failed write", p.Value)
		}
		p.used = true
		w.note(func() { w.touched = append(w.touched, p.Value) })
		if _, err := current.Conn().ExecContext(ctx, w.insert, p.Place, p.Value); err != nil {
			return err
		}
		at := occasion{where: phaseWrite, call: call, value: p.Value, attempt: w.faults.visit(phaseWrite, p.Place), batch: len(items)}
		if err := w.faults.raise(at); err != nil {
			return err
		}
	}
	return nil
}

type listeningWriter struct {
	*writer
	afterWrite
}
