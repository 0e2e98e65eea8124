// Package itemtest checks that a reader or writer keeps the contract by which the chunk step restarts
// it: call [Reader] and [Writer] from the tests of every such component.
//
//	func TestOrders(t *testing.T) {
//		itemtest.Reader(t, itemtest.ReaderConfig{
//			New: func(testing.TB) item.Reader { return item.EraseReader[Order](NewOrders("testdata/orders.xml")) },
//		})
//	}
//
// It imports core, core/registry and the standard library. Only tests import it.
package itemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type outcome struct {
	item any
	then string // when read: it must not change later
	meta item.Meta
	err  string
}

func (o outcome) String() string {
	if o.err != "" {
		return "error " + o.err
	}
	return fmt.Sprintf("%s (%s)", o.then, o.meta)
}

func itemAt(items item.Items, i int) outcome {
	o := outcome{item: items.At(i), meta: items.Meta(i)}
	if row, ok := o.item.(item.Row); ok {
		o.then = fmt.Sprint(row.Values())
	} else if text, err := json.Marshal(o.item); err == nil {
		o.then = string(text)
	}
	return o
}

func open(component any, at item.Position) error { return openIn(context.Background(), component, at) }

func openIn(ctx context.Context, component any, at item.Position) error {
	if o, ok := component.(item.Opener); ok {
		return o.Open(ctx, at)
	}
	return nil
}

func shut(t testing.TB, component any) {
	t.Helper()
	if c, ok := component.(item.Closer); ok {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func position(t testing.TB, component any) item.Position {
	t.Helper()
	p, ok := component.(item.Positioner)
	if !ok {
		return nil
	}
	at, err := p.Position()
	if err != nil {
		t.Fatalf("Position: %v", err)
	}
	again, err := p.Position()
	if err != nil || string(again) != string(at) {
		t.Fatalf("Position called twice returns %s, then %s (%v)", at, again, err)
	}
	checkPosition(t, at)
	// The repository returns another slice: it must not be shared.
	return append(item.Position(nil), at...)
}

func readOne(r item.Reader) (outcome, error) {
	items := r.NewItems(1)
	err := r.Fill(context.Background(), items, 1)
	switch {
	case err == nil && items.Len() == 1:
		return itemAt(items, 0), nil
	case err == nil:
		return outcome{}, fmt.Errorf("Fill returned no error and %d items, not 1", items.Len())
	case item.IsConsumed(err):
		return outcome{err: err.Error()}, nil
	}
	return outcome{}, err
}

// With positions, readAll also returns the position before the first outcome and after each.
func readAll(t testing.TB, r item.Reader, positions bool) (all []outcome, at []item.Position) {
	t.Helper()
	if positions {
		at = append(at, position(t, r.Component()))
	}
	for {
		o, err := readOne(r)
		if errors.Is(err, io.EOF) {
			return all, at
		}
		if err != nil {
			t.Fatalf("Read of item %d: %v", len(all)+1, err)
		}
		all = append(all, o)
		if positions {
			at = append(at, position(t, r.Component()))
		}
	}
}

func same(t testing.TB, what string, want, got []outcome) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Fatalf("%s: item %d of %d is\n\t%v\nwant\n\t%v", what, i+1, len(want), got[i], want[i])
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%s: %d items, want %d", what, len(got), len(want))
	}
}

func spread(last, n int) []int {
	var picked []int
	for i := 0; i <= last; i++ {
		if last < n || i*n/(last+1) != (i-1)*n/(last+1) || i == 0 || i == last {
			picked = append(picked, i)
		}
	}
	return picked
}
