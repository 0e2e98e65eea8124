package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// refillWriter refills a table in the modes truncate and replace (rules TW2, TW3). All its changes are in a
// transaction that commits its position under the guard of the step's owner: an attempt that wakes after
// its successor has begun changes nothing. Not for concurrent use.
type refillWriter struct {
	writer    *writer
	mode      writeMode
	attemptOf func(ctx context.Context) (core.Attempt, error)
	attempt   core.Attempt
	found     refillable
	at        refillPosition
}

type refillPosition struct {
	// Shadow is the table with the rows so far, or empty.
	Shadow string `json:"shadow,omitempty"`
	// Done means that rows now go to the table itself.
	Done bool `json:"done,omitempty"`
	// Columns are the written ones, quoted, and Left is the shadow that is not dropped yet (MySQL).
	Columns string `json:"columns,omitempty"`
	Left    string `json:"left,omitempty"`
}

// newRefill returns the writer of the modes truncate and replace. All attempts of one step of one instance
// have one shadow table, named by attempt (from registry.BuildContext).
func newRefill(db tx.Database, cfg config, schema *row.Schema, attempt func(ctx context.Context) (core.Attempt, error)) (*refillWriter, error) {
	r := &refillWriter{mode: cfg.Mode, attemptOf: attempt}
	if attempt == nil {
		return nil, fmt.Errorf("table: mode %s needs a step with a recorded history", cfg.mode())
	}
	if !cfg.refills() {
		return nil, fmt.Errorf("table: mode %s does not refill the table: use New", cfg.mode())
	}
	cfg.Mode = modeInsert
	var err error
	r.writer, err = newWriter(db, cfg, schema)
	return r, err
}

func refillOf(ctx context.Context, db tx.Database, c config, b registry.BuildContext) (any, error) {
	if b.RedriveOf != 0 {
		return addTo(ctx, db, c, b)
	}
	r, err := newRefill(db, c, b.In.Schema(), b.Attempt)
	if err != nil {
		return nil, err
	}
	r.writer.context = b.StepContext
	if db.Dialect() == tx.MySQL {
		return b.In.ToRecords(mysqlRefill{r})
	}
	return b.In.ToRecords(r)
}

// Until the step has completed, it may still empty the table or exchange its rows, and rows added by a
// redrive would be lost.
func addTo(ctx context.Context, db tx.Database, c config, b registry.BuildContext) (any, error) {
	if err := b.RedriveLater(ctx); err != nil {
		return nil, fmt.Errorf("table %s: %w", c.Name, err)
	}
	c.Mode = modeInsert
	w, err := newWriter(db, c, b.In.Schema())
	if err != nil {
		return nil, err
	}
	return b.In.ToRecords(w)
}

// Open checks the table, and that rows of earlier attempts are still there.
func (r *refillWriter) Open(ctx context.Context, at item.Position) error {
	if err := r.Rewind(ctx, at); err != nil {
		return err
	}
	var err error
	if r.attempt, err = r.attemptOf(ctx); err != nil {
		return err
	}
	if step, part, is := strings.Cut(r.attempt.Step, ":"); is {
		return fmt.Errorf("table %s: mode %s in partition %s of step %s: each partition would remove the rows of the others", r.writer.config.Name, r.mode, part, step)
	}
	if err := r.writer.Open(ctx, nil); err != nil {
		return err
	}
	conn, name := tx.ConnOf(ctx, r.writer.db), r.writer.config.Name
	if r.at.Shadow != "" {
		found, err := r.writer.engine.describe(ctx, conn, r.at.Shadow)
		if err != nil {
			return fmt.Errorf("table %s: look up %s: %w", name, r.at.Shadow, err)
		}
		if found.absent() {
			return fmt.Errorf("table %s: table %s with the rows of earlier attempts is missing: start again with --from-start", name, r.at.Shadow)
		}
	}
	if r.writer.table.absent() {
		r.found.isTable = true
		return nil
	}
	return r.check(ctx, conn)
}

// check refuses a table if refilling it would lose more than its rows.
func (r *refillWriter) check(ctx context.Context, conn tx.Conn) error {
	name := r.writer.config.Name
	found, err := r.writer.engine.refill(ctx, conn, name)
	if err != nil {
		return fmt.Errorf("table %s: look up its constraints: %w", name, err)
	}
	r.found = found
	switch {
	case !found.isTable:
		return fmt.Errorf("table %s: mode %s needs a table, but this is not one", name, r.mode)
	case r.mode != modeReplace:
		return nil
	case len(found.referredBy) > 0:
		return fmt.Errorf("table %s: mode replace would remove rows that a foreign key of %s refers to: use mode upsert, and delete old rows in a separate step",
			name, strings.Join(found.referredBy, ", "))
	case found.toItself && r.writer.db.Dialect() == tx.SQLite:
		return fmt.Errorf("table %s: mode replace cannot check its foreign key to itself on SQLite: use mode truncate", name)
	}
	return nil
}

// WriteRecords writes the records in the chunk's transaction.
func (r *refillWriter) WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error {
	if len(records) == 0 {
		return nil
	}
	t, err := r.transaction(ctx)
	if err != nil {
		return err
	}
	r.writer.forgetOld(t)
	if r.at == (refillPosition{}) {
		if err := r.begin(ctx, t.Conn(), schema); err != nil {
			return err
		}
	}
	return r.writer.WriteRecords(ctx, schema, records)
}

func (r *refillWriter) begin(ctx context.Context, conn tx.Conn, schema *row.Schema) error {
	if r.mode == modeTruncate {
		if err := r.empty(ctx, conn); err != nil {
			return err
		}
		r.at.Done = true
		return nil
	}
	if err := r.writer.prepare(ctx, conn, schema); err != nil {
		return err
	}
	name, d := r.writer.config.Name, r.writer.db.Dialect()
	shadow, columns := shadowName(name, r.attempt), r.writer.plan.names()
	if d != tx.MySQL {
		if _, err := conn.ExecContext(ctx, "drop table if exists "+d.Quote(shadow)); err != nil {
			return fmt.Errorf("table %s: remove %s, left over from an earlier attempt: %w", name, shadow, err)
		}
	}
	shadow, err := r.writer.engine.shadow(ctx, conn, name, shadow, columns)
	if err != nil {
		return fmt.Errorf("table %s: make a table for the new rows: %w", name, err)
	}
	at := refillPosition{Shadow: shadow}
	if d == tx.MySQL {
		at.Columns = quotedList(columns)
	}
	r.goTo(at)
	return nil
}

func (r *refillWriter) empty(ctx context.Context, conn tx.Conn) error {
	if err := r.writer.readCatalog(ctx, conn, nil); err != nil || r.writer.table.absent() {
		return err
	}
	if err := r.writer.engine.empty(ctx, conn, r.writer.config.Name, r.found); err != nil {
		return fmt.Errorf("table %s: empty it: %w", r.writer.config.Name, err)
	}
	return nil
}

// Complete implements item.Completer.
func (r *refillWriter) Complete(ctx context.Context) error {
	if r.at.Done {
		return nil
	}
	t, err := r.transaction(ctx)
	if err != nil {
		return err
	}
	if err := r.writer.createAbsent(ctx); err != nil {
		return err
	}
	shadow := r.at.Shadow
	if r.mode == modeReplace {
		err = r.exchange(ctx, t.Conn())
	} else {
		err = r.empty(ctx, t.Conn())
	}
	if err != nil {
		return err
	}
	done := refillPosition{Done: true}
	if shadow != "" {
		if done.Left, err = r.writer.removeOwn(ctx, t.Conn(), shadow); err != nil {
			return err
		}
	}
	r.goTo(done)
	return nil
}

// removeOwn removes a table of the step in the transaction. Where a DROP would commit, the table is emptied, and left to be
// dropped after the commit.
func (w *writer) removeOwn(ctx context.Context, conn tx.Conn, table string) (left string, err error) {
	statement := "drop table "
	if w.db.Dialect() == tx.MySQL {
		statement, left = "delete from ", table
	}
	if _, err := conn.ExecContext(ctx, statement+w.db.Dialect().Quote(table)); err != nil {
		return "", fmt.Errorf("table %s: remove %s: %w", w.config.Name, table, err)
	}
	return left, nil
}

// DELETE does not block readers, which see the old rows until the commit; other writers wait.
func (r *refillWriter) exchange(ctx context.Context, conn tx.Conn) error {
	w, d := r.writer, r.writer.db.Dialect()
	if err := w.readCatalog(ctx, conn, nil); err != nil || w.table.absent() {
		return err
	}
	if err := w.engine.exclude(ctx, conn, w.config.Name); err != nil {
		return fmt.Errorf("table %s: %w", w.config.Name, err)
	}
	statements := []string{"delete from " + d.Quote(w.config.Name)}
	if r.at.Shadow != "" {
		columns, err := r.shadowColumns(ctx, conn)
		if err != nil {
			return err
		}
		statements = append(statements, fmt.Sprintf("insert into %s (%s) select %s from %s", d.Quote(w.config.Name), columns, columns, d.Quote(r.at.Shadow)))
	}
	var took int64
	for _, text := range statements {
		result, err := conn.ExecContext(ctx, text)
		if err == nil {
			took, err = result.RowsAffected()
		}
		if err != nil {
			return fmt.Errorf("table %s: exchange its rows: %w", w.config.Name, err)
		}
	}
	if r.at.Shadow == "" {
		return nil
	}
	return r.exchanged(ctx, conn, took)
}

func (r *refillWriter) shadowColumns(ctx context.Context, conn tx.Conn) (string, error) {
	if r.at.Columns != "" {
		return r.at.Columns, nil
	}
	found, err := r.writer.engine.describe(ctx, conn, r.at.Shadow)
	if err != nil {
		return "", fmt.Errorf("table %s: look up %s: %w", r.writer.config.Name, r.at.Shadow, err)
	}
	var names []string
	for _, c := range found.columns {
		if c.refused == "" {
			names = append(names, c.name)
		}
	}
	return quotedList(names), nil
}

func (r *refillWriter) exchanged(ctx context.Context, conn tx.Conn, took int64) error {
	w := r.writer
	var sent int
	if err := conn.QueryRowContext(ctx, "select count(*) from "+w.db.Dialect().Quote(r.at.Shadow)).Scan(&sent); err != nil {
		return fmt.Errorf("table %s: count the rows of %s: %w", w.config.Name, r.at.Shadow, err)
	}
	if err := (&plan{counts: w.config.LeftOut != leftOutIgnore}).tookAll(took, sent); err != nil {
		return fmt.Errorf("table %s: exchange its rows: %w", w.config.Name, err)
	}
	return nil
}

// CountLeftOut implements itemextra.LeftOuter.
func (r *refillWriter) CountLeftOut() { r.writer.CountLeftOut() }

// leftOutPolicy implements itemextra.LeftOuter.
func (r *refillWriter) LeftOut() int64 { return r.writer.LeftOut() }

// leftOutError implements itemextra.LeftOuter.
func (r *refillWriter) LeftOutError(n, of int64) error { return r.writer.LeftOutError(n, of) }

// Position implements item.Positioner.
func (r *refillWriter) Position() (item.Position, error) {
	if r.at == (refillPosition{}) {
		return nil, nil
	}
	return json.Marshal(r.at)
}

// Rewind implements item.Rewinder.
func (r *refillWriter) Rewind(_ context.Context, at item.Position) error {
	var p refillPosition
	if at != nil {
		if err := json.Unmarshal(at, &p); err != nil {
			return fmt.Errorf("table %s: stored position: %w", r.writer.config.Name, err)
		}
	}
	r.goTo(p)
	return nil
}

func (r *refillWriter) goTo(at refillPosition) {
	r.at = at
	if r.writer.into != at.Shadow {
		r.writer.into, r.writer.plan = at.Shadow, nil
	}
}

func (r *refillWriter) transaction(ctx context.Context) (tx.Tx, error) {
	t, ok := tx.From(ctx, r.writer.db.Name())
	if !ok {
		return nil, r.writer.noTransaction()
	}
	return t, nil
}

func shadowName(table string, attempt core.Attempt) string {
	schema, name := "", table
	if i := strings.LastIndexByte(table, '.'); i >= 0 {
		schema, name = table[:i+1], table[i+1:]
	}
	shadow := "surfin_" + attempt.Scope() + "_" + name
	if len(shadow) > maxName {
		sum := sha256.Sum256([]byte(name))
		shadow = strings.ToValidUTF8(shadow[:maxName-9], "") + "_" + hex.EncodeToString(sum[:4])
	}
	return schema + shadow
}
