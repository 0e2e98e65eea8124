package inbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Handler moves the event's row, and returns guard.Table.Move's result. Its writes in ctx's transaction commit
// with the note; a rejection or error undoes them. A panic is an error; exception.Fatal ends the event.
type Handler[S core.StateType] func(ctx context.Context, e Event) (guard.Result[S], error)

// Done counts results.
type Done struct {
	Applied   int
	Duplicate int
	Rejected  int // waits for the row's next move
	Failed    int // offered again later
	Dead      int // no longer offered, of rejected and failed
}

// Process offers a topic's open events, oldest first, each in its own transaction, until none is left; others'
// events are left. An event is offered again if its row moved meanwhile. Failures are stored; the first ten
// are returned. tx.ErrTransaction if ctx carries one.
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

// offerable: the row has passed the awaited version, and the time has come; too old ones once more. Takes the
// TTL.
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

type offer[S core.StateType] struct {
	*Inbox[S]
	topic  string
	id     int64
	handle Handler[S]

	answer  core.Answer
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

// One transaction locks the event. If it cannot commit, perhaps because of the handler, another one writes the
// failure: no event blocks later ones.
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

// The row's version is read before f reads: an unseen move is newer.
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
			return nil // another process has or had it
		}
		if err != nil {
			return err
		}
		e.Payload, e.ReceivedAt = json.RawMessage(payload), at.Time
		return f(ctx, e, version)
	})
}

// A savepoint undoes writes before a rejection.
func (o *offer[S]) call(ctx context.Context, e Event) (result guard.Result[S], err error) {
	err = o.manager.Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
		return exception.GuardApart(func() error {
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

// The version to pass and minimum wait, or the last offer.
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
