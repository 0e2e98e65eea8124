package itemkit

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Unread is an item that a reader could not read.
type Unread struct {
	Err error
	Raw item.RawText
}

// UnreadItems reads everything and returns the items that could not be read, with their texts. r (an
// item.RawReader) is opened and closed.
func UnreadItems(t testing.TB, r item.Reader) (all []Unread) {
	t.Helper()
	source, ok := r.Component().(item.RawReader)
	if !ok {
		t.Fatalf("%T is not an item.RawReader", r.Component())
	}
	if o, ok := r.Component().(item.Opener); ok {
		if err := o.Open(context.Background(), nil); err != nil {
			t.Fatalf("Open: %v", err)
		}
	}
	if c, ok := r.Component().(item.Closer); ok {
		defer func() {
			if err := c.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
	}
	for {
		err := r.Fill(context.Background(), r.NewItems(1), 1)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case item.IsConsumed(err):
			all = append(all, Unread{err, source.RawText()})
		case err != nil:
			t.Fatalf("Read: %v", err)
		}
	}
}

// Quoting returns the errors that contain one of the texts.
func Quoting(all []Unread, texts ...string) (found []error) {
	for _, u := range all {
		for _, text := range texts {
			if strings.Contains(u.Err.Error(), text) {
				found = append(found, u.Err)
			}
		}
	}
	return found
}
