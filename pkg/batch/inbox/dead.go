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
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Dead is an event that is offered no more.
type Dead struct {
	Event
	LastError string
	DeadAt    time.Time
}

// Dead returns the dead events of a topic, the newest first, at most limit.
func (b *Inbox[S]) Dead(ctx context.Context, topic string, limit int) (list []Dead, err error) {
	rows, err := tx.ConnOf(ctx, b.db).QueryContext(ctx, b.sql(`SELECT id, subject, dedupe_key, payload, offers, created_at, last_error, dead_at
		FROM {event} WHERE topic = ? AND dead_at IS NOT NULL ORDER BY id DESC LIMIT ?`), topic, limit)
	if err != nil {
		return nil, fmt.Errorf("dead events of topic %s: %w", topic, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		d := Dead{Event: Event{Topic: topic}}
		var payload string
		var received, died gormtx.Instant
		if err := rows.Scan(&d.ID, &d.Subject, &d.DedupeKey, &payload, &d.Offers, &received, &d.LastError, &died); err != nil {
			return nil, fmt.Errorf("dead events of topic %s: %w", topic, err)
		}
		d.Payload, d.ReceivedAt, d.DeadAt = json.RawMessage(payload), received.Time, died.Time
		list = append(list, d)
	}
	return list, rows.Err()
}

// Revive makes a dead event be offered again, as often and as long as a new one. One that is
// not dead is core.Duplicate; an unknown id is core.ErrNotFound.
func (b *Inbox[S]) Revive(ctx context.Context, id int64) (core.Answer, error) {
	var revived bool
	err := b.manager.Do(ctx, b.attr(), func(ctx context.Context) error {
		var found int64
		err := b.row(ctx, `UPDATE {event} SET dead_at = NULL, offers = 0, offer_after = ?, next_offer_at = NULL, created_at = {now}
			WHERE id = ? AND dead_at IS NOT NULL RETURNING id`, anyRow, id).Scan(&found)
		if revived = err == nil; !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = b.row(ctx, "SELECT id FROM {event} WHERE id = ?", id).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return core.ErrNotFound
		}
		return err
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("revive event %d: %w", id, err)
	case revived:
		return core.Applied, nil
	}
	return core.Duplicate, nil
}

// Forget deletes events that were processed longer than age ago, at most limit, and returns
// how many. An event that is sent again after that is a new one: choose an age beyond what a
// sender repeats. Its row's machine still ignores what it has passed.
func (b *Inbox[S]) Forget(ctx context.Context, age time.Duration, limit int) (int, error) {
	result, err := tx.ConnOf(ctx, b.db).ExecContext(ctx, b.sql(`DELETE FROM {event} WHERE id IN (
		SELECT e.id FROM {event} e WHERE e.processed_at < {later} ORDER BY e.processed_at LIMIT ?{skip_locked})`), -age.Microseconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("forget events: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}
