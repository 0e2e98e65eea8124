package inbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Events are all events of a database, for any rows. It is safe for concurrent use, by many processes.
type Events struct {
	db      tx.Database
	manager *tx.Manager
	names   *strings.Replacer
}

// NewEvents returns the events of db, from the table with a name that begins with prefix. It does no
// I/O.
func NewEvents(db tx.Database, prefix string) *Events { return newEvents(db, prefix, nil) }

// guarded is the table of the rows that events are for.
type guarded interface {
	Name() string
	Columns() guard.Columns
}

// newEvents also knows the table of rows, unless it is nil.
func newEvents(db tx.Database, prefix string, rows guarded) *Events {
	var table, id, version string
	if rows != nil {
		c := rows.Columns()
		table, id, version = rows.Name(), "r."+db.Dialect().Quote(c.ID), "r."+db.Dialect().Quote(c.Version)
	}
	lock := map[tx.Dialect]string{tx.Postgres: " FOR UPDATE OF e SKIP LOCKED", tx.MySQL: " FOR UPDATE SKIP LOCKED"}[db.Dialect()]
	return &Events{
		db: db, manager: tx.NewManager(db),
		names: strings.NewReplacer(append(gormtx.Words(db.Dialect()), "{event}", db.Dialect().Quote(prefix+"event"), "{audit}", db.Dialect().Quote(prefix+"task_audit"), "{rows}", table, "{row.id}", id, "{row.version}", version,
			"{skip_locked}", lock)...),
	}
}

// Dead is an event that is no longer offered.
type Dead struct {
	Event
	LastError string    `json:"last_error,omitempty"`
	DeadAt    time.Time `json:"dead_at"`
}

// Dead returns the dead events of a topic, or of all for "", the newest first, at most limit.
func (b *Events) Dead(ctx context.Context, topic string, limit int) (list []Dead, err error) {
	rows, err := tx.ConnOf(ctx, b.db).QueryContext(ctx, b.sql(`SELECT id, topic, subject, dedupe_key, payload, offers, created_at, last_error, dead_at
		FROM {event} WHERE (topic = ? OR ? = '') AND dead_at IS NOT NULL ORDER BY id DESC LIMIT ?`), topic, topic, limit)
	if err != nil {
		return nil, fmt.Errorf("dead events of topic %q: %w", topic, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = []Dead{}
	for rows.Next() {
		var d Dead
		var payload string
		var received, died gormtx.Instant
		if err := rows.Scan(&d.ID, &d.Topic, &d.Subject, &d.DedupeKey, &payload, &d.Offers, &received, &d.LastError, &died); err != nil {
			return nil, fmt.Errorf("dead events of topic %q: %w", topic, err)
		}
		d.Payload, d.ReceivedAt, d.DeadAt = json.RawMessage(payload), received.Time, died.Time
		list = append(list, d)
	}
	return list, rows.Err()
}

// Revive offers a dead event again, as often and as long as a new one. A live one is core.Duplicate; an
// unknown ID is core.ErrNotFound. The audit names actor and reason.
func (b *Events) Revive(ctx context.Context, id int64, actor, reason string) (core.Answer, error) {
	var revived bool
	err := b.manager.Do(ctx, b.attr(), func(ctx context.Context) error {
		var found int64
		err := b.row(ctx, `UPDATE {event} SET dead_at = NULL, offers = 0, offer_after = ?, next_offer_at = NULL, created_at = {now}
			WHERE id = ? AND dead_at IS NOT NULL RETURNING id`, anyRow, id).Scan(&found)
		if revived = err == nil; revived {
			return b.noted(ctx, "offer", actor, strings.TrimSuffix(fmt.Sprintf("event %d: %s", id, reason), ": "))
		}
		if !errors.Is(err, sql.ErrNoRows) {
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

// Forget deletes at most limit events that were processed longer than age ago, and returns their
// number. An event that is sent again after that is a new one: choose an age beyond a sender's
// repetitions. Its row's machine still ignores moves that it has passed.
func (b *Events) Forget(ctx context.Context, age time.Duration, limit int) (int, error) {
	result, err := tx.ConnOf(ctx, b.db).ExecContext(ctx, b.sql(`DELETE FROM {event} WHERE id IN (
		SELECT id FROM (SELECT e.id FROM {event} e WHERE e.processed_at < {later} ORDER BY e.processed_at LIMIT ?{skip_locked}) AS oldest)`), -age.Microseconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("delete events: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Purge is Forget, and notes in the audit how many events actor deleted.
func (b *Events) Purge(ctx context.Context, age time.Duration, limit int, actor string) (n int, err error) {
	err = b.manager.Do(ctx, b.attr(), func(ctx context.Context) (err error) {
		if n, err = b.Forget(ctx, age, limit); err != nil || n == 0 {
			return err
		}
		return b.noted(ctx, "purge", actor, fmt.Sprintf("%d processed events", n))
	})
	return n, err
}

func (b *Events) noted(ctx context.Context, act, actor, detail string) error {
	_, err := tx.ConnOf(ctx, b.db).ExecContext(ctx, b.sql("INSERT INTO {audit} (at, task_id, act, actor, detail, verb, person) VALUES ({now}, 0, ?, ?, ?, ?, ?)"), act, actor, detail, act, actor)
	return err
}

func (b *Events) sql(text string) string { return b.db.Dialect().Bind(b.names.Replace(text)) }

func (b *Events) row(ctx context.Context, text string, args ...any) *sql.Row {
	return tx.ConnOf(ctx, b.db).QueryRowContext(ctx, b.sql(text), args...)
}

// attr requests READ COMMITTED explicitly, as the repository does: a row that another transaction has
// just moved must be seen.
func (b *Events) attr() tx.Attr {
	if b.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}
