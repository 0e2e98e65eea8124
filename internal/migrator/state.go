package migrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	migratedb "github.com/golang-migrate/migrate/v4/database"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DirtyError reports a schema that a migration left half-way (rule T7a).
type DirtyError struct {
	Version int
	At      *HalfWay
	// Err is nil if the process died.
	Err error
}

// HalfWay is the position in a migration that commits before its end.
type HalfWay struct {
	From      int    `json:"from"`
	To        int    `json:"to"`
	Line      int    `json:"line"`
	Statement string `json:"statement"`
	// Alone: the statement ran without a transaction, so some of it may have happened.
	Alone bool `json:"alone"`
}

// Error names the statement and the remedy.
func (e *DirtyError) Error() string {
	if e.At == nil {
		return fmt.Sprintf("migration %d failed half-way: repair the schema manually, then record its state with force: "+
			"version %d if the migration's changes are there, the previous one if they are not", e.Version, e.Version)
	}
	return e.At.story(e.Err)
}

// Unwrap returns the cause.
func (e *DirtyError) Unwrap() error { return e.Err }

func (h *HalfWay) story(cause error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ended half-way, at line %d: %s", h.migration(), h.Line, clipped(h.Statement))
	if cause != nil {
		fmt.Fprintf(&b, ": %s", cause)
	}
	b.WriteString(". The statements before it in the file are committed; ")
	if !h.Alone {
		b.WriteString("it had no effect. ")
	} else {
		b.WriteString("it runs without a transaction, so check how far it got")
		if strings.Contains(strings.ToUpper(h.Statement), "CONCURRENTLY") {
			b.WriteString(" (an index that is INVALID must be dropped)")
		}
		b.WriteString(". ")
	}
	fmt.Fprintf(&b, "Then either complete it manually and record it: force, version %d; "+
		"or undo its changes manually and record that: force, version %d, after which it runs again", h.To, h.From)
	return b.String()
}

func (h *HalfWay) migration() string {
	if h.To > h.From {
		return fmt.Sprintf("migration %d up", h.To)
	}
	return fmt.Sprintf("migration %d down", h.From)
}

func clipped(text string) string {
	const maxLen = 120
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxLen {
		return string(runes[:maxLen]) + "…"
	}
	return string(runes)
}

type state struct {
	version int
	dirty   bool
}

// Result is the state found and left; version 0 has no migrations.
type Result struct {
	From, To uint
	// Dirty: the migration to To ended half-way and waits for a Force (rule T7a).
	Dirty   bool
	Changed bool
}

func result(before, after state) Result {
	return Result{
		From: uint(max(before.version, 0)), To: uint(max(after.version, 0)), //nolint:gosec // not negative
		Dirty: after.dirty, Changed: before != after,
	}
}

func current(ctx context.Context, db tx.Database, table string) (state, error) {
	exists := "SELECT to_regclass($1) IS NOT NULL"
	name := db.Dialect().Quote(table)
	switch db.Dialect() {
	case tx.MySQL:
		exists, name = "SELECT count(*) > 0 FROM information_schema.tables WHERE table_schema = database() AND table_name = ?", table
	case tx.Postgres:
	case tx.SQLite:
		exists, name = "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?1", table
	}
	conn := db.Conn() // not the current transaction's, which may not see committed rows
	var found bool
	if err := conn.QueryRowContext(ctx, exists, name).Scan(&found); err != nil {
		return state{}, fmt.Errorf("find table %s: %w", table, err)
	}
	s := state{version: migratedb.NilVersion}
	if !found {
		return s, nil
	}
	rows, err := conn.QueryContext(ctx, "SELECT version, dirty FROM "+db.Dialect().Quote(table))
	if err != nil {
		return s, fmt.Errorf("read table %s: %w", table, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells what went wrong
	for rows.Next() {
		if err := rows.Scan(&s.version, &s.dirty); err != nil {
			return s, fmt.Errorf("read table %s: %w", table, err)
		}
	}
	if err := rows.Err(); err != nil {
		return s, fmt.Errorf("read table %s: %w", table, err)
	}
	return s, nil
}

func (h *HalfWay) text() (string, error) {
	text, err := json.Marshal(h)
	return string(text), err
}

func halfWay(text string) (*HalfWay, error) {
	if text == "" {
		return nil, nil
	}
	h := &HalfWay{}
	if err := json.Unmarshal([]byte(text), h); err != nil {
		return nil, fmt.Errorf("read where the migration ended: %w", err)
	}
	return h, nil
}
