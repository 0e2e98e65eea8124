package inbox

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// Inbox keeps the events for the rows of one guarded table, in that table's database. It is
// safe for concurrent use, by many processes.
type Inbox[S core.StateType] struct {
	*Events
	rows     *guard.Table[S]
	options  Options
	observer core.Observer
	wrong    error // the error of every call: the table cannot have an inbox
}

// Options override the defaults of an inbox.
type Options struct {
	// MaxOffers is the number of offers in vain after which an event is dead; 0 means 10.
	MaxOffers int
	// TTL is the age from which an event is dead after an offer in vain; 0 means 72 h.
	TTL time.Duration
	// Backoff is the time until an event is offered again after its handler failed; it doubles with
	// each offer, up to 5 min. 0 means 1 s.
	Backoff time.Duration
	// Observer is notified of dead events (core.EventDead); it may be nil.
	Observer core.Observer
}

const longestBackoff = 5 * time.Minute

// New returns the inbox of a table; the table of events has a name that begins with prefix. It does no
// I/O. The rows need an integer key and a version (guard.Columns): without them Receive and Process
// fail.
func New[S core.StateType](rows *guard.Table[S], prefix string, o Options) *Inbox[S] {
	o.MaxOffers = cmp.Or(o.MaxOffers, 10)
	o.TTL = cmp.Or(o.TTL, 72*time.Hour)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	b := &Inbox[S]{Events: newEvents(rows.Database(), prefix, rows), rows: rows, options: o, observer: core.Observers(o.Observer)}
	if c := rows.Columns(); c.ID == "" || c.Version == "" {
		b.wrong = fmt.Errorf("the inbox of table %s: events wait for a newer version of a row: the table needs guard.Columns.ID (an integer) and Version", rows.Name())
	}
	return b
}

// Event is an event of a row, as its sender describes it.
type Event struct {
	// Topic selects the handler. It has at most 100 bytes.
	Topic string `json:"topic"`
	// Subject is the ID of the row. The row may not exist yet.
	Subject int64 `json:"subject"`
	// DedupeKey is the same whenever the event is sent, and unique among all events of the database, of
	// any topic. It has at most 200 bytes.
	DedupeKey string `json:"dedupe_key"`
	// Payload is JSON of at most 1 MiB, or empty.
	Payload json.RawMessage `json:"payload,omitempty"`

	// ID, Offers (including this one) and ReceivedAt are filled in when it is offered.
	ID         int64     `json:"id"`
	Offers     int       `json:"offers"`
	ReceivedAt time.Time `json:"received_at"`
}

// Decode reads the payload into a value. An absent payload is an error.
func (e Event) Decode(into any) error {
	if err := json.Unmarshal(e.Payload, into); err != nil {
		return fmt.Errorf("the payload of event %d: %w", e.ID, err)
	}
	return nil
}

// ErrOtherEvent means that a dedupe key was used for another event.
var ErrOtherEvent = errors.New("the dedupe key was used for another event")

const (
	maxTopic   = 100
	maxKey     = 200
	maxPayload = 1 << 20
	// anyRow is the version that an event without a wait waits for: versions begin at 0, and a missing
	// row has the version -1.
	anyRow = -2
)

// Receive stores an event, in the transaction that ctx carries, else in one of its own. The answer is
// core.Applied, or core.Duplicate if it is already stored, or an ErrOtherEvent if its key belongs to an
// event with another topic, subject or payload.
func (b *Inbox[S]) Receive(ctx context.Context, e Event) (core.Answer, error) {
	if err := errors.Join(b.wrong, e.check()); err != nil {
		return "", fmt.Errorf("receive event %q: %w", e.DedupeKey, err)
	}
	for range mostTries {
		var id int64
		err := b.row(ctx, `INSERT INTO {event} (topic, subject, dedupe_key, payload, offer_after, created_at) VALUES (?, ?, ?, ?, ?, {now})
			ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`, e.Topic, e.Subject, e.DedupeKey, string(e.Payload), anyRow).Scan(&id)
		if err == nil {
			return core.Applied, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return "", fmt.Errorf("receive event %q: %w", e.DedupeKey, err)
		}
		known := Event{DedupeKey: e.DedupeKey}
		var payload string
		err = b.row(ctx, "SELECT id, topic, subject, payload FROM {event} WHERE dedupe_key = ?", e.DedupeKey).
			Scan(&known.ID, &known.Topic, &known.Subject, &payload)
		if errors.Is(err, sql.ErrNoRows) {
			continue // it was forgotten in between
		}
		if err != nil {
			return "", fmt.Errorf("receive event %q: %w", e.DedupeKey, err)
		}
		known.Payload = json.RawMessage(payload)
		if !e.same(known) {
			return core.Rejected, fmt.Errorf("receive event %q: %w: event %d of topic %s for %d", e.DedupeKey, ErrOtherEvent, known.ID, known.Topic, known.Subject)
		}
		return core.Duplicate, nil
	}
	return "", fmt.Errorf("receive event %q: it appears and disappears", e.DedupeKey)
}

const mostTries = 20

// check reports all errors in an event.
func (e Event) check() error {
	var errs []error
	for _, text := range []struct {
		name, text string
		most       int
	}{{"topic", e.Topic, maxTopic}, {"dedupe key", e.DedupeKey, maxKey}} {
		switch {
		case text.text == "":
			errs = append(errs, fmt.Errorf("%s: it is empty", text.name))
		case len(text.text) > text.most:
			errs = append(errs, fmt.Errorf("%s: it has %d bytes, more than the allowed %d", text.name, len(text.text), text.most))
		case !utf8.ValidString(text.text) || strings.ContainsRune(text.text, 0):
			errs = append(errs, fmt.Errorf("%s: %q is not a text of UTF-8 without NUL", text.name, text.text))
		}
	}
	switch {
	case len(e.Payload) > maxPayload:
		errs = append(errs, fmt.Errorf("payload: it has %d bytes, more than the allowed %d", len(e.Payload), maxPayload))
	case len(e.Payload) > 0 && (!json.Valid(e.Payload) || !utf8.Valid(e.Payload)):
		errs = append(errs, errors.New("payload: it is not JSON"))
	}
	return errors.Join(errs...)
}

// same reports whether it is the same event, sent again: a sender may write the same JSON with other
// spaces or in another order.
func (e Event) same(other Event) bool {
	if e.Topic != other.Topic || e.Subject != other.Subject {
		return false
	}
	if bytes.Equal(e.Payload, other.Payload) {
		return true
	}
	x, errX := decoded(e.Payload)
	y, errY := decoded(other.Payload)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decoded(payload json.RawMessage) (any, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err
}
