package inbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Handler applies an event: it moves the event's row, and returns the result of guard.Table.Move. ctx
// carries the transaction; everything the handler writes in it commits together with the note that the
// event is processed. For a rejection or an error its writes are undone. A panic is an error; one made
// by exception.Fatal ends the event.
type Handler[S core.StateType] func(ctx context.Context, e Event) (guard.Result[S], error)

// Done counts the results of Process.
type Done struct {
	Applied   int // the move was made
	Duplicate int // nothing was left to do
	Rejected  int // too early, or never: it waits for the next move of its row
	Failed    int // the handler failed: it is offered again later
	Dead      int // of the rejected and failed, those that are no longer offered
}

// Process offers the open events of a topic, the oldest first, each in a transaction of its own, until
// none is left that can be offered now. It leaves an event that another process works on. An event is
// offered again if another event moves its row meanwhile. Failures of the handler are stored with their
// events, and the first ten are returned. ctx may not carry a transaction of the database
// (tx.ErrTransaction).
func (b *Inbox[S]) Process(ctx context.Context, topic string, handle Handler[S]) (Done, error) {
	ctx, err := tx.Apart(ctx, []string{b.db.Name()})
	if err = errors.Join(b.wrong, err); err != nil {
		return Done{}, fmt.Errorf("process events of topic %s: %w", topic, err)
	}
	var done Done
	var failures []error
	for {
		ids, err := b.candidates(ctx, topic)
		if err != nil {
			return done, fmt.Errorf("process events of topic %s: %w", topic, err)
		}
		offered := 0
		for _, id := range ids {
			o := offer[S]{Inbox: b, topic: topic, id: id, handle: handle}
			if err := o.make(ctx); err != nil {
				return done, errors.Join(fmt.Errorf("event %d of topic %s: %w", id, topic, err), errors.Join(failures...))
			}
			offered += o.count(&done)
			if o.failure != nil && len(failures) < 10 {
				failures = append(failures, fmt.Errorf("event %d of topic %s: %w", id, topic, o.failure))
			}
		}
		if offered == 0 {
			return done, errors.Join(failures...)
		}
	}
}

// offerable is the condition on which an event e is offered: its row has passed the version that it
// waits for, and its time has come; one that is too old is offered once more, for the last time. It
// takes the TTL as an argument.
const offerable = `e.processed_at IS NULL AND e.dead_at IS NULL AND (
	(e.offer_after < COALESCE((SELECT {row.version} FROM {rows} r WHERE {row.id} = e.subject), -1) AND (e.next_offer_at IS NULL OR e.next_offer_at <= {now}))
	OR (e.offers > 0 AND e.created_at < {later}))`

func (b *Inbox[S]) candidates(ctx context.Context, topic string) (ids []int64, err error) {
	rows, err := tx.ConnOf(ctx, b.db).QueryContext(ctx,
		b.sql("SELECT e.id FROM {event} e WHERE e.topic = ? AND "+offerable+" ORDER BY e.created_at, e.id LIMIT 100"), topic, -b.options.TTL.Microseconds())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// offer is one offer of one event.
type offer[S core.StateType] struct {
	*Inbox[S]
	topic  string
	id     int64
	handle Handler[S]

	answer  core.Answer // "" if it was not offered, or the handler failed
	failure error
	dead    bool
}

func (o *offer[S]) count(done *Done) int {
	switch {
	case o.answer == core.Applied:
		done.Applied++
	case o.answer == core.Duplicate:
		done.Duplicate++
	case o.answer == core.Rejected:
		done.Rejected++
	case o.failure != nil:
		done.Failed++
	default:
		return 0
	}
	if o.dead {
		done.Dead++
	}
	return 1
}

// make offers the event and writes the result, in one transaction that locks the event. If that
// transaction cannot be committed, perhaps because of the handler, the failure is written in another
// one: no event blocks later ones.
func (o *offer[S]) make(ctx context.Context) error {
	called := false
	err := o.locked(ctx, func(ctx context.Context, e Event, version int64) error {
		called = true
		result, err := o.call(ctx, e)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && result.Answer == core.Rejected:
			o.answer = core.Rejected
			return o.inVain(ctx, e, err, version, 0)
		case err != nil:
			o.failure = err
			return o.inVain(ctx, e, err, anyRow, o.backoff(e))
		}
		o.answer = result.Answer
		_, err = tx.ConnOf(ctx, o.db).ExecContext(ctx, o.sql("UPDATE {event} SET offers = ?, processed_at = {now}, last_error = '' WHERE id = ?"), e.Offers, o.id)
		return err
	})
	if err == nil || !called || ctx.Err() != nil {
		return err
	}
	o.answer, o.dead = "", false
	o.failure = errors.Join(o.failure, err)
	return o.locked(ctx, func(ctx context.Context, e Event, _ int64) error {
		return o.inVain(ctx, e, o.failure, anyRow, o.backoff(e))
	})
}

// locked calls f with the event, if it can be offered now and no other process has it, and with the
// version of its row, which was read before f reads the row: a move that f does not see is newer.
func (o *offer[S]) locked(ctx context.Context, f func(ctx context.Context, e Event, version int64) error) error {
	return o.manager.Do(ctx, o.attr(), func(ctx context.Context) error {
		e := Event{ID: o.id, Topic: o.topic}
		var payload string
		var at gormtx.Instant
		var version int64
		err := o.row(ctx, `SELECT e.subject, e.dedupe_key, e.payload, e.offers + 1, e.created_at, COALESCE((SELECT {row.version} FROM {rows} r WHERE {row.id} = e.subject), -1)
			FROM {event} e WHERE e.id = ? AND `+offerable+"{skip_locked}",
			o.id, -o.options.TTL.Microseconds()).Scan(&e.Subject, &e.DedupeKey, &payload, &e.Offers, &at, &version)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // another process has it, or had it
		}
		if err != nil {
			return err
		}
		e.Payload, e.ReceivedAt = json.RawMessage(payload), at.Time
		return f(ctx, e, version)
	})
}

// call runs the handler after a savepoint: its writes before a rejection are undone.
func (o *offer[S]) call(ctx context.Context, e Event) (result guard.Result[S], err error) {
	err = o.manager.Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
		return panics.GuardApart(func() error {
			result = guard.Result[S]{}
			r, err := o.handle(ctx, e)
			result = r
			switch {
			case err != nil:
				return err
			case r.Answer == core.Rejected:
				return errors.New("it was rejected")
			case r.Answer != core.Applied && r.Answer != core.Duplicate:
				return exception.Fatal("", fmt.Errorf("the handler returned %q, but must return a result of guard.Table.Move", r.Answer))
			}
			return nil
		})
	})
	return result, err
}

func (o *offer[S]) backoff(e Event) time.Duration {
	return min(o.options.Backoff<<min(e.Offers-1, 20), longestBackoff)
}

// inVain notes an offer in vain, the version that the row must pass before the next one, and its
// minimum wait; or that it was the last one.
func (o *offer[S]) inVain(ctx context.Context, e Event, why error, version int64, wait time.Duration) error {
	last := 0
	if e.Offers >= o.options.MaxOffers || isFatal(why) {
		last = 1
	}
	var died sql.NullInt64
	err := o.row(ctx, `UPDATE {event} SET offers = ?, last_error = ?, offer_after = ?, next_offer_at = {later},
		dead_at = CASE WHEN ? = 1 OR created_at < {later} THEN {now} END WHERE id = ? RETURNING CASE WHEN dead_at IS NOT NULL THEN 1 END`,
		e.Offers, gormtx.Storable(why.Error(), maxError), version, wait.Microseconds(), last, -o.options.TTL.Microseconds(), o.id).Scan(&died)
	if err != nil || !died.Valid {
		return err
	}
	o.dead = true
	event := core.EventDead{Machine: o.rows.Machine().Name(), Topic: o.topic, ID: o.id, Subject: e.Subject, Offers: e.Offers, Err: why}
	tx.AtEnd(ctx, o.db.Name(), func(committed bool) {
		if committed {
			o.observer.Observe(ctx, event)
		}
	})
	return nil
}

const maxError = 2000

func isFatal(err error) bool {
	batch, ok := errors.AsType[*exception.BatchError](err)
	return ok && !batch.IsRetryable() && !batch.IsSkippable()
}
