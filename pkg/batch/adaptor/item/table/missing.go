package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// syncWriter upserts rows and deletes those with keys that did not come (rule TW7).
// The table of received keys is filled in the chunks' transactions and dropped
// in the one that deletes. Not for concurrent use.
type syncWriter struct {
	writer  *writer
	seen    *writer
	attempt func(ctx context.Context) (core.Attempt, error)
	of      core.Attempt
	resumed bool
	at      syncPosition
	tally   itemextra.Tally
}

type syncPosition struct {
	// Begun means that the attempts so far have kept their keys.
	Begun bool   `json:"begun"`
	Keys  string `json:"keys,omitempty"`
	// Left is the table of keys that is not dropped yet (MySQL).
	Left string `json:"left,omitempty"`
	// Done means that rows were deleted, or that they were to stay.
	Done bool `json:"done,omitempty"`
}

// newSync returns the writer of `delete_missing`.
func newSync(db tx.Database, cfg config, schema *row.Schema, attempt func(ctx context.Context) (core.Attempt, error), resumed bool) (*syncWriter, error) {
	if attempt == nil {
		return nil, errors.New("table: delete_missing needs a step with a recorded history")
	}
	w, err := newWriter(db, cfg, schema)
	return &syncWriter{writer: w, attempt: attempt, resumed: resumed}, err
}

func missingSync(db tx.Database, c config, b registry.BuildContext) (any, error) {
	s, err := newSync(db, c, b.In.Schema(), b.Attempt, b.Continues)
	if err != nil {
		return nil, err
	}
	s.writer.context = b.StepContext
	if db.Dialect() == tx.MySQL {
		return b.In.ToRecords(mysqlSync{s})
	}
	return b.In.ToRecords(s)
}

// Open checks the table, and finds the keys of earlier attempts.
func (s *syncWriter) Open(ctx context.Context, at item.Position) error {
	name := s.writer.config.Name
	if at == nil && s.resumed {
		return fmt.Errorf("table %s: delete_missing: the keys that earlier attempts wrote are not known: start again with --from-start", name)
	}
	if err := s.Rewind(ctx, at); err != nil {
		return err
	}
	var err error
	if s.of, err = s.attempt(ctx); err != nil {
		return err
	}
	if step, part, is := strings.Cut(s.of.Step, ":"); is {
		return fmt.Errorf("table %s: delete_missing in partition %s of step %s: each partition would delete the rows of the others", name, part, step)
	}
	if err := s.writer.Open(ctx, nil); err != nil {
		return err
	}
	if s.at.Keys != "" {
		found, err := s.writer.engine.describe(ctx, tx.ConnOf(ctx, s.writer.db), s.at.Keys)
		if err != nil {
			return fmt.Errorf("table %s: look up %s: %w", name, s.at.Keys, err)
		}
		if found.absent() {
			return fmt.Errorf("table %s: table %s with the keys of earlier attempts is missing: start again with --from-start", name, s.at.Keys)
		}
	}
	if s.writer.table.absent() {
		return nil
	}
	_, _, err = s.writer.deletedMark()
	return err
}

// unmarked is the condition for unmarked rows.
func (w *writer) deletedMark() (mark, unmarked string, err error) {
	if w.config.DeleteMissing != deleteSoft {
		return "", "", nil
	}
	name, d := w.config.deletedColumn(), w.db.Dialect()
	i := w.table.indexOf(name, d)
	if i < 0 {
		return "", "", fmt.Errorf("table %s: delete_missing: soft needs a column %s of type timestamp, date or boolean: name another by `deleted`", w.config.Name, name)
	}
	kind := w.table.columns[i].kind
	marks := map[row.Kind]string{row.Timestamp: "now()", row.DateKind: "current_date", row.Bool: "true"}
	switch d {
	case tx.Postgres:
	case tx.MySQL:
		marks[row.Timestamp] = "now(6)"
	case tx.SQLite:
		marks = map[row.Kind]string{row.Timestamp: "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')", row.DateKind: "date('now')", row.Bool: "1"}
	}
	mark, ok := marks[kind]
	switch {
	case !ok:
		return "", "", fmt.Errorf("table %s: delete_missing: soft: column %s is of type %s, and should be timestamp, date or boolean", w.config.Name, name, w.table.columns[i].typeText())
	case kind == row.Bool:
		return mark, quoted(name) + " is not " + mark, nil
	}
	return mark, quoted(name) + " is null", nil
}

// WriteRecords writes the records and their keys in the chunk's transaction.
func (s *syncWriter) WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error {
	t, ok := tx.From(ctx, s.writer.db.Name())
	if !ok {
		return s.writer.noTransaction()
	}
	if len(records) == 0 {
		return nil
	}
	if err := s.writer.WriteRecords(ctx, schema, records); err != nil {
		return err
	}
	if err := s.keep(ctx, t, schema); err != nil {
		return err
	}
	return s.seen.WriteRecords(ctx, schema, records)
}

func (s *syncWriter) keep(ctx context.Context, t tx.Tx, schema *row.Schema) (err error) {
	w := s.writer
	name := s.at.Keys
	if name == "" {
		var list []string
		for _, k := range w.config.Key {
			c := &w.table.columns[w.table.indexOf(k, w.db.Dialect())]
			text := quoted(k) + " " + c.typeText()
			if c.collation != "" {
				text += " collate " + c.collation
			}
			list = append(list, text)
		}
		want := shadowName(w.config.Name+"_keys", s.of)
		if name, err = w.engine.keys(ctx, t.Conn(), want, strings.Join(list, ", ")+", primary key ("+quotedList(w.config.Key)+")"); err != nil {
			return fmt.Errorf("table %s: make %s for the keys: %w", w.config.Name, want, err)
		}
	}
	if s.seen == nil || s.seen.config.Name != name {
		columns := map[string]string{}
		for _, k := range w.config.Key {
			columns[k] = w.config.field(k)
		}
		if s.seen, err = newWriter(w.db, config{Name: name, Mode: modeUpsert, Key: w.config.Key, Columns: columns}, schema); err != nil {
			return err
		}
	}
	if s.at.Keys != "" {
		return nil
	}
	s.seen.table, s.seen.plan = relation{}, nil
	if w.db.Dialect() != tx.MySQL {
		s.seen.createdIn = t
	}
	s.at.Keys = name
	return nil
}

// Tally implements itemextra.Tallier.
func (s *syncWriter) Tally(t itemextra.Tally) { s.tally = t }

// Complete implements item.Completer: it deletes the rows with keys that did not come.
func (s *syncWriter) Complete(ctx context.Context) error {
	if s.at.Done {
		return nil
	}
	t, ok := tx.From(ctx, s.writer.db.Name())
	if !ok {
		return s.writer.noTransaction()
	}
	if err := s.writer.createAbsent(ctx); err != nil {
		return err
	}
	why := ""
	switch {
	case s.tally.Skipped > 0:
		why = fmt.Sprintf("%d items were skipped, so their keys are unknown", s.tally.Skipped)
	case s.at.Keys == "" && !s.writer.config.DeleteAll:
		why = "the input has no rows; to delete all rows in that case, set `delete_all: true`"
	}
	if why != "" {
		if err := s.warn(why); err != nil {
			return err
		}
	} else if err := s.deleteMissing(ctx, t.Conn()); err != nil {
		return fmt.Errorf("table %s: delete the rows missing from the input: %w", s.writer.config.Name, err)
	}
	if s.at.Keys != "" {
		left, err := s.writer.removeOwn(ctx, t.Conn(), s.at.Keys)
		if err != nil {
			return err
		}
		s.at.Left = left
	}
	s.at.Keys, s.at.Done = "", true
	return nil
}

func (s *syncWriter) deleteMissing(ctx context.Context, conn tx.Conn) error {
	w := s.writer
	if err := w.readCatalog(ctx, conn, nil); err != nil || w.table.absent() {
		return err
	}
	mark, unmarked, err := w.deletedMark()
	if err != nil {
		return err
	}
	text := "delete from " + w.db.Dialect().Quote(w.config.Name) + " as t where "
	if w.db.Dialect() == tx.MySQL {
		text = "delete t" + strings.TrimPrefix(text, "delete")
	}
	if mark != "" {
		text = "update " + w.db.Dialect().Quote(w.config.Name) + " as t set " + quoted(w.config.deletedColumn()) + " = " + mark + " where " + unmarked + " and "
	}
	var present []string
	for _, k := range w.config.Key {
		present = append(present, "t."+quoted(k)+" is not null")
	}
	text += strings.Join(present, " and ")
	if w.config.Where != "" {
		text += " and (" + w.config.Where + ")"
	}
	if s.at.Keys != "" {
		if err := s.checkKeys(ctx, conn); err != nil {
			return err
		}
		text += " and " + s.without("t", s.at.Keys, "s")
	}
	_, err = conn.ExecContext(ctx, text)
	return err
}

// A trigger or rule of the table may give its rows other keys: the deletion
// would then take received rows.
func (s *syncWriter) checkKeys(ctx context.Context, conn tx.Conn) (err error) {
	w := s.writer
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("select s.* from %s as s where %s limit 1", w.db.Dialect().Quote(s.at.Keys), s.without("s", w.config.Name, "t")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return rows.Err()
	}
	values := make([]any, len(w.config.Key))
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	var key []string
	for i, v := range values {
		key = append(key, fmt.Sprintf("%s %v", w.config.Key[i], v))
	}
	return exception.Fatal("", fmt.Errorf("no row is deleted: the input has a row with %s, but the table has none with this key, so rows of the input could be deleted: "+
		"a trigger or a rule changes the key or leaves the row out, or another program removed it; let the job write the key as the table stores it, "+
		"and start again with --from-start", strings.Join(key, ", ")))
}

// Keys are compared as in the column of t: SQLite takes the collation of the
// left side.
func (s *syncWriter) without(outer, inner, alias string) string {
	w := s.writer
	var ofOuter, ofInner, equal []string
	for _, k := range w.config.Key {
		ofOuter, ofInner = append(ofOuter, outer+"."+quoted(k)), append(ofInner, alias+"."+quoted(k))
		equal = append(equal, "t."+quoted(k)+" = s."+quoted(k))
	}
	if w.db.Dialect() == tx.SQLite && outer == "t" { // makes an index with the collation of t
		return fmt.Sprintf("(%s) not in (select %s from %s as %s)", strings.Join(ofOuter, ", "), strings.Join(ofInner, ", "), w.db.Dialect().Quote(inner), alias)
	}
	return fmt.Sprintf("not exists (select 1 from %s as %s where %s)", w.db.Dialect().Quote(inner), alias, strings.Join(equal, " and "))
}

func (s *syncWriter) warn(why string) error {
	if s.writer.context == nil {
		return nil
	}
	return core.Warn(s.writer.context(), fmt.Sprintf("table %s: no row is deleted: %s", s.writer.config.Name, why))
}

// Position implements item.Positioner.
func (s *syncWriter) Position() (item.Position, error) {
	s.at.Begun = true
	return json.Marshal(s.at)
}

// Rewind implements item.Rewinder.
func (s *syncWriter) Rewind(_ context.Context, at item.Position) error {
	s.at = syncPosition{}
	if s.seen != nil {
		s.seen.table, s.seen.plan = relation{}, nil
	}
	if at == nil {
		return nil
	}
	if err := json.Unmarshal(at, &s.at); err != nil {
		return fmt.Errorf("table %s: stored position: %w", s.writer.config.Name, err)
	}
	return nil
}

// CountLeftOut implements itemextra.LeftOuter.
func (s *syncWriter) CountLeftOut() { s.writer.CountLeftOut() }

// leftOutPolicy implements itemextra.LeftOuter.
func (s *syncWriter) LeftOut() int64 { return s.writer.LeftOut() }

// leftOutError implements itemextra.LeftOuter.
func (s *syncWriter) LeftOutError(n, of int64) error { return s.writer.LeftOutError(n, of) }
