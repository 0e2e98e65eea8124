package itemkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/internal/fault"
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

// Fault is the place of the mistake: its field, its column, and its text in brackets.
func (u Unread) Fault() string {
	at, text := fault.Of(u.Err, u.Raw.Text), []rune(u.Raw.Text)
	if at.To == 0 {
		return fmt.Sprintf("%s/%d", at.Field, at.Column)
	}
	return fmt.Sprintf("%s/%d %s[%s]%s", at.Field, at.Column, string(text[:at.From]), string(text[at.From:at.To]), string(text[at.To:]))
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
