package itemtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// ReaderConfig configures how to make and check a reader.
type ReaderConfig struct {
	// New returns a new unopened reader over the same data; item.EraseReader adapts an item.ItemReader.
	New func(t testing.TB) item.Reader
	// Want are the items, in order, without those that fail with an item.ConsumedError; nil means as in the
	// first pass.
	Want []any
	// Restarts is the number of positions to try, spread over all; 0 means 100.
	Restarts int
	// Source is the file that New reads, or ""; the suite writes other texts into it.
	Source string
	// Joins: items may depend on later text in Source.
	Joins bool
	// Change changes the data so that a restart must be refused, or nil. It is called last.
	Change func(t testing.TB)
}

// Reader checks the contract of a reader: the same items in every pass, io.EOF repeatedly, a restart at
// every position delivers exactly the rest, unreadable positions and changed data are refused, the text of
// a failed item fails again when read alone, a cancelled read loses nothing, and Close works in every
// state. Source is also read damaged: that must end in io.EOF or an error that names the file, and a
// restart deliver the rest.
func Reader(t *testing.T, cfg ReaderConfig) {
	t.Helper()
	if cfg.Restarts == 0 {
		cfg.Restarts = 100
	}
	c := &readerCheck{ReaderConfig: cfg}
	first := c.opened(t, nil)
	c.all, c.at = readAll(t, first, true)
	shut(t, first.Component())
	_, c.restarts = first.Component().(item.Positioner)

	t.Run("delivers the items it should", c.want)
	t.Run("returns io.EOF again and again", c.endsForGood)
	t.Run("delivers the same in chunks", c.chunks)
	t.Run("can be closed at any time", c.closes)
	t.Run("loses nothing when a read is cancelled", c.cancelled)
	if _, ok := first.Component().(item.RawReader); ok {
		t.Run("keeps the text of each item that it cannot read", c.texts)
	}
	if c.restarts {
		t.Run("restarted at any position delivers the rest", c.resumes)
		t.Run("refuses a position that it cannot read", c.refusesGarbage)
	}
	if c.Source != "" {
		t.Run("ends for every text", c.damages)
	}
	if c.restarts && cfg.Change != nil {
		t.Run("refuses a source that changed", c.refusesChange)
	}
}

type readerCheck struct {
	ReaderConfig
	all      []outcome
	at       []item.Position
	restarts bool
}

func (c *readerCheck) opened(t testing.TB, at item.Position) item.Reader {
	t.Helper()
	r := c.New(t)
	if err := open(r.Component(), at); err != nil {
		shut(t, r.Component())
		t.Fatalf("Open at %s: %v", at, err)
	}
	return r
}

func (c *readerCheck) want(t *testing.T) {
	if c.Want == nil {
		return
	}
	var items []any
	for _, o := range c.all {
		if o.err == "" {
			items = append(items, o.item)
		}
	}
	if !reflect.DeepEqual(c.Want, items) {
		t.Fatalf("the items are\n\t%v\nwant\n\t%v", items, c.Want)
	}
}

func (c *readerCheck) endsForGood(t *testing.T) {
	r := c.opened(t, nil)
	defer shut(t, r.Component())
	readAll(t, r, false)
	end := position(t, r.Component())
	for range 3 {
		if _, err := readOne(r); !errors.Is(err, io.EOF) {
			t.Fatalf("after the end Read returns %v, want io.EOF", err)
		}
	}
	if again := position(t, r.Component()); string(again) != string(end) {
		t.Fatalf("after the end the position moved from %s to %s", end, again)
	}
}

func (c *readerCheck) texts(t *testing.T) {
	r := c.opened(t, nil)
	defer shut(t, r.Component())
	for {
		_, err := readOne(r)
		if errors.Is(err, io.EOF) {
			return
		}
		var consumed *item.ConsumedError
		if !errors.As(err, &consumed) {
			continue
		}
		raw := r.Component().(item.RawReader).RawText()
		if raw.Length == 0 || raw.Offset < 0 {
			t.Fatalf("the text of %v is %+v", err, raw)
		}
		if _, ok := r.Component().(item.RawOpener); ok {
			c.readAgain(t, consumed, raw)
		}
	}
}

func (c *readerCheck) readAgain(t *testing.T, failure *item.ConsumedError, raw item.RawText) {
	alone := c.New(t)
	defer shut(t, alone.Component())
	stored, truncated, _ := raw.Bounded()
	if truncated {
		return
	}
	for range 2 {
		if err := alone.Component().(item.RawOpener).OpenRaw(context.Background(), failure.Meta, stored); err != nil {
			t.Fatalf("OpenRaw of %q: %v", raw.Text, err)
		}
		var again *item.ConsumedError
		if _, err := readOne(alone); !errors.As(err, &again) || again.Meta != failure.Meta {
			t.Fatalf("the text %q failed with %v, but alone with %v", raw.Text, failure, err)
		}
		if same := alone.Component().(item.RawReader).RawText(); !reflect.DeepEqual(same, raw) {
			t.Fatalf("the text is %+v, but alone %+v", raw, same)
		}
		if _, err := readOne(alone); !errors.Is(err, io.EOF) {
			t.Fatalf("after the text %q: %v, want io.EOF", raw.Text, err)
		}
	}
}

// An item must not change while later ones are read.
func (c *readerCheck) chunks(t *testing.T) {
	for _, size := range []int{2, 7, len(c.all) + 1} {
		r := c.opened(t, nil)
		var got []outcome
		for ended := false; !ended; {
			items := r.NewItems(size)
			var failed *outcome
			for items.Len() < size && failed == nil && !ended {
				err := r.Fill(context.Background(), items, size)
				switch {
				case errors.Is(err, io.EOF):
					ended = true
				case item.IsConsumed(err):
					failed = &outcome{err: err.Error()}
				case err != nil:
					t.Fatalf("Read in chunks of %d: %v", size, err)
				}
			}
			for i := range items.Len() {
				got = append(got, itemAt(items, i))
			}
			if failed != nil {
				got = append(got, *failed)
			}
		}
		shut(t, r.Component())
		same(t, "in chunks", c.all, got)
	}
}

func (c *readerCheck) cancelled(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	unopened := c.New(t)
	if o, ok := unopened.Component().(item.Opener); ok {
		if err := o.Open(gone, nil); err != nil {
			t.Logf("Open when the step was stopped: %v", err)
		}
	}
	shut(t, unopened.Component())
	r := c.opened(t, nil)
	defer shut(t, r.Component())
	var got []outcome
	for {
		before := position(t, r.Component())
		items := r.NewItems(1)
		err := r.Fill(gone, items, 1)
		switch {
		case errors.Is(err, io.EOF):
			same(t, "read for a step that was stopped", c.all, got)
			return
		case err == nil && items.Len() == 1:
			got = append(got, itemAt(items, 0))
			continue
		case item.IsConsumed(err):
			got = append(got, outcome{err: err.Error()})
			continue
		}
		if after := position(t, r.Component()); string(after) != string(before) {
			again := c.opened(t, after)
			rest, _ := readAll(t, again, false)
			shut(t, again.Component())
			same(t, "restarted after a cancelled read", c.all[len(got):], rest)
		}
		o, err := readOne(r)
		if errors.Is(err, io.EOF) {
			same(t, "read again after each cancelled read", c.all, got)
			return
		}
		if err != nil {
			t.Logf("Read of item %d after a cancelled read: %v", len(got)+1, err)
			same(t, "read up to a cancelled read", c.all[:min(len(got), len(c.all))], got)
			return
		}
		got = append(got, o)
	}
}

func (c *readerCheck) closes(t *testing.T) {
	shut(t, c.opened(t, nil).Component())
	r := c.opened(t, nil)
	if _, err := readOne(r); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("Read: %v", err)
	}
	shut(t, r.Component())
}

func (c *readerCheck) resumes(t *testing.T) {
	for _, i := range spread(len(c.all), c.Restarts) {
		r := c.opened(t, c.at[i])
		rest, at := readAll(t, r, true)
		shut(t, r.Component())
		same(t, "restarted after item "+itoa(i), c.all[i:], rest)
		c.resumeAgain(t, i, at)
	}
}

// Most positions of a restarted reader are the same as without the restart, and need no further check.
func (c *readerCheck) resumeAgain(t *testing.T, i int, at []item.Position) {
	for k := range at {
		if string(at[k]) == string(c.at[i+k]) {
			continue
		}
		r := c.opened(t, at[k])
		rest, _ := readAll(t, r, false)
		shut(t, r.Component())
		same(t, "restarted after item "+itoa(i)+" and again after item "+itoa(i+k), c.all[i+k:], rest)
		return
	}
}

func (c *readerCheck) refusesGarbage(t *testing.T) {
	r := c.New(t)
	if err := open(r.Component(), item.Position(`{"no`)); err == nil {
		t.Error("Open accepted a position that is not JSON")
	}
	shut(t, r.Component())
}

func (c *readerCheck) refusesChange(t *testing.T) {
	c.Change(t)
	at := c.at[len(c.at)/2]
	r := c.New(t)
	err := open(r.Component(), at)
	if err == nil {
		t.Errorf("Open at %s accepted a source that changed", at)
	} else {
		t.Logf("refused: %v", err)
	}
	shut(t, r.Component())
}

func checkPosition(t testing.TB, at item.Position) {
	t.Helper()
	if at != nil && !json.Valid(at) {
		t.Fatalf("the position is not JSON: %s", at)
	}
	if len(at) > ports.MaxPositionBytes {
		t.Fatalf("the position has %d bytes, more than %d", len(at), ports.MaxPositionBytes)
	}
}
