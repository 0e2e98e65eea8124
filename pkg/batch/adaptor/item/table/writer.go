package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// writer writes records into one table. Not for concurrent use.
type writer struct {
	db      tx.Database
	config  config
	schema  *row.Schema
	engine  engine
	batch   batch
	table   relation // without columns before the query
	plan    *plan
	planned atomic.Pointer[plan]
	// After a reconnection (a migration) the catalog is queried again.
	reconnects int64
	// Once the transaction that created the table is over, its existence must be checked again.
	createdIn tx.Tx
	// nil means no warnings
	context func() *core.ExecutionContext
	warned  string
	counted bool
	leftOut int64
	// earlier completes errors about an existing table that `create: true` would make differently.
	earlier string
	// the target of the rows instead of the table, or empty
	into string
}

// newWriter checks config against the schema of the items: for an open schema, with the first chunk. The modes
// truncate and replace belong to [newRefill].
func newWriter(db tx.Database, cfg config, schema *row.Schema) (*writer, error) {
	if schema == nil {
		return nil, errors.New("table: the items have no record form")
	}
	if err := errors.Join(cfg.Validate(), cfg.check(schema)); err != nil {
		return nil, err
	}
	if cfg.refills() {
		return nil, fmt.Errorf("table: mode %s needs a position: use NewRefill", cfg.Mode)
	}
	w := &writer{db: db, config: cfg, schema: schema}
	switch db.Dialect() {
	case tx.Postgres:
		w.engine = &postgres{zone: cfg.zone}
	case tx.SQLite:
		w.engine = &sqlite{zone: cfg.zone}
	case tx.MySQL:
		w.engine = &mysql{db: db, config: &w.config}
		if err := cfg.OnMySQL(); err != nil {
			return nil, fmt.Errorf("table: %w", err)
		}
	default:
		return nil, fmt.Errorf("table: the dialect %s has no table writer", db.Dialect())
	}
	w.batch = w.engine.newBatch()
	return w, nil
}

// Open checks the table. An absent one is created in the transaction of the first chunk, so that a failure
// leaves none (rule TW5).
func (w *writer) Open(ctx context.Context, _ item.Position) error {
	conn := tx.ConnOf(ctx, w.db)
	if err := w.readCatalog(ctx, conn, nil); err != nil {
		return err
	}
	switch {
	case w.table.absent() && w.config.Create:
		return nil
	case w.schema.IsOpen():
		return w.present(nil)
	}
	if w.config.Create {
		if err := w.noteEarlier(ctx, conn); err != nil {
			return err
		}
	}
	if len(w.toAdd(w.schema)) > 0 {
		return nil
	}
	return w.prepare(ctx, conn, w.schema)
}

// WriteRecords writes the records in the chunk's transaction.
func (w *writer) WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error {
	t, ok := tx.From(ctx, w.db.Name())
	if !ok {
		return w.noTransaction()
	}
	if len(records) == 0 {
		return nil
	}
	w.forgetOld(t)
	if w.plan == nil || (w.plan.schema != schema && !w.plan.schema.SameShape(schema)) {
		if err := w.prepare(ctx, t.Conn(), schema); err != nil {
			return err
		}
	}
	size := len(records)
	if w.config.Batch > 0 {
		size = w.config.Batch
	}
	defer w.batch.forget()
	for _, round := range w.rounds(records) {
		for part := range slices.Chunk(round, size) {
			var err error
			if w.plan.rekeys && len(part) > 1 {
				err = w.writeRekeyed(ctx, t.Conn(), records, part)
			} else {
				err = w.writePart(ctx, t.Conn(), records, part)
			}
			if err != nil {
				return w.failed(err)
			}
		}
	}
	return nil
}

func (w *writer) writePart(ctx context.Context, conn tx.Conn, records, part [][]row.Value) error {
	err := w.write(ctx, conn, records, part)
	if errors.Is(err, errRepeated) {
		err = w.writeLayers(ctx, conn, records, part)
	}
	return err
}

func (w *writer) write(ctx context.Context, conn tx.Conn, records, part [][]row.Value) error {
	err := w.batch.encode(w.plan, part)
	if err == nil {
		err = w.batch.send(ctx, conn, w.plan)
	}
	return inOrder(err, records, part)
}

// writeLayers writes repeated keys with one statement for the first record of each key, one for the second,
// and so on: the last one of a key stays (rule D8).
func (w *writer) writeLayers(ctx context.Context, conn tx.Conn, records, part [][]row.Value) error {
	for _, layer := range w.layers(part, true) {
		if err := w.write(ctx, conn, records, layer); err != nil {
			return err
		}
	}
	return nil
}

// If the predicate of an index decides whether two rows of one key conflict, PostgreSQL refuses the second
// one in a statement.
func (w *writer) rounds(records [][]row.Value) [][][]row.Value {
	if w.config.Where == "" || w.db.Dialect() != tx.Postgres {
		return [][][]row.Value{records}
	}
	return w.layers(records, w.plan.exactKeys())
}

// Without exact keys, each record is a layer.
func (w *writer) layers(records [][]row.Value, exact bool) [][][]row.Value {
	var list [][][]row.Value
	var keys lasts
	times := map[string]int{}
	for i, record := range records {
		n := i
		if exact {
			key := string(keys.text(w.plan, record))
			n = times[key]
			times[key]++
		}
		if n == len(list) {
			list = append(list, nil)
		}
		list[n] = append(list[n], record)
	}
	return list
}

func (w *writer) failed(err error) error {
	w.leftOut = 0
	if isOfValue(err) {
		err = exception.InvalidItem("", exception.ClassInvalidItem, err)
	}
	earlier := ""
	if exception.IsSkippable(err) || dberr.IsInvalidData(err) {
		earlier = w.earlier
	}
	return fmt.Errorf("table %s: %s: %w%s", w.config.Name, w.config.mode(), err, earlier)
}

// CountLeftOut implements itemextra.LeftOuter.
func (w *writer) CountLeftOut() { w.counted = true }

// leftOutPolicy implements itemextra.LeftOuter.
func (w *writer) LeftOut() int64 {
	n := w.leftOut
	w.leftOut = 0
	return n
}

// leftOutError implements itemextra.LeftOuter.
func (w *writer) LeftOutError(n, of int64) error {
	if w.config.LeftOut == leftOutIgnore {
		return nil
	}
	return fmt.Errorf("table %s: %w", w.config.Name, leftOut(n, of))
}

func (w *writer) forgetOld(t tx.Tx) {
	if (w.createdIn != nil && w.createdIn != t) || w.reconnects != w.db.Reconnects() {
		w.table, w.plan, w.createdIn = relation{}, nil, nil
	}
}

func (w *writer) noTransaction() error {
	return fmt.Errorf("table %s: there is no transaction on database %s: the step's transaction is on another database", w.config.Name, w.db.Name())
}

func (w *writer) prepare(ctx context.Context, conn tx.Conn, schema *row.Schema) error {
	if err := w.readCatalog(ctx, conn, schema); err != nil {
		return err
	}
	if err := w.present(schema); err != nil {
		return err
	}
	if err := w.addColumns(ctx, conn, schema); err != nil {
		return err
	}
	p, err := newPlan(&w.config, schema, &w.table, w.db.Dialect())
	if err != nil {
		return fmt.Errorf("table %s: %w%s", w.config.Name, err, w.earlier)
	}
	if w.counted {
		p.leaveOut = func(n int64) error { w.leftOut += n; return nil }
	}
	_, p.relation = schemaOf(cmp.Or(w.into, w.config.Name))
	p.into = w.db.Dialect().Quote(cmp.Or(w.into, w.config.Name))
	if w.into != "" { // its schema is not known
		p.qualified = ""
	}
	if err := w.warn(p.ignored); err != nil {
		return err
	}
	w.plan = p
	w.planned.Store(p)
	return nil
}

func (w *writer) readCatalog(ctx context.Context, conn tx.Conn, schema *row.Schema) error {
	if !w.table.absent() {
		return nil
	}
	w.reconnects = w.db.Reconnects()
	describe := func() (err error) {
		if w.table, err = w.engine.describe(ctx, conn, w.config.Name); err != nil {
			err = fmt.Errorf("table %s: look up its columns: %w", w.config.Name, err)
		}
		return err
	}
	if err := describe(); err != nil || !w.table.absent() || !w.config.Create || schema == nil {
		return err
	}
	if w.db.Dialect() == tx.MySQL { // CREATE would commit (rule MY3)
		conn = w.db.Conn()
	}
	if _, err := conn.ExecContext(ctx, w.engine.oneByOne(w.createStatement(schema))); err != nil {
		return fmt.Errorf("table %s: create: %w", w.config.Name, err)
	}
	w.createdIn, _ = tx.From(ctx, w.db.Name())
	return describe()
}

func (w *writer) present(schema *row.Schema) error {
	if !w.table.absent() {
		if why, refused := w.table.refuses[w.config.mode()]; refused {
			return fmt.Errorf("table %s: %s", w.config.Name, why)
		}
		return nil
	}
	e := &absentTableError{Table: w.config.Name}
	if schema != nil && w.config.mode() != modeUpdate && w.config.mode() != modeDelete {
		e.Statement = w.createStatement(schema)
	}
	return e
}

// isOfValue reports an error caused by a value though its code is one of
// statements ('a b' as tsquery, 'nope' as regclass): it has no position in a
// statement.
func isOfValue(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Position != 0 || pg.InternalPosition != 0 || pg.InternalQuery != "" || strings.Contains(pg.Where, "PL/") {
		return false
	}
	switch pg.Code {
	case "42601", "42602", "42P01", "42703", "42704", "42883", "42725", "3F000":
		return true
	}
	return false
}
