package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// creator is a Writer that creates its table: in the transaction of the first rows, or without rows in a
// separate one at the end (rule TW5).
type creator struct{ *writer }

func (c creator) Complete(ctx context.Context) error { return c.createAbsent(ctx) }

// PrepareParts implements item.PartsPreparer: concurrent parts would wait for the first of them.
func (w *writer) PrepareParts(ctx context.Context) error { return w.createAbsent(ctx) }

// The columns of an open schema are known only from items: without one, no
// table is created.
func (w *writer) createAbsent(ctx context.Context) error {
	t, ok := tx.From(ctx, w.db.Name())
	if !ok {
		return w.noTransaction()
	}
	w.forgetOld(t)
	if !w.config.Creates() || w.schema.IsOpen() {
		return nil
	}
	if err := w.readCatalog(ctx, t.Conn(), w.schema); err != nil || w.table.absent() {
		return err
	}
	return w.addColumns(ctx, t.Conn(), w.schema)
}

func (w *writer) toAdd(schema *row.Schema) (names []string) {
	if w.config.Schema != schemaAdd || w.table.absent() || schema.IsOpen() {
		return nil
	}
	for _, name := range w.config.written(schema) {
		if w.table.indexOf(name, w.db.Dialect()) < 0 && !slices.Contains(w.config.Key, name) {
			names = append(names, name)
		}
	}
	return names
}

const columnExists = 1060

// Added columns may be null, since existing rows have no value for them.
func (w *writer) addColumns(ctx context.Context, conn tx.Conn, schema *row.Schema) error {
	names, d := w.toAdd(schema), w.db.Dialect()
	if len(names) == 0 {
		return nil
	}
	t, in := tx.From(ctx, w.db.Name())
	if !in {
		return w.noTransaction()
	}
	absent := ""
	if d == tx.Postgres {
		absent = "if not exists "
	}
	alter := conn
	if d == tx.MySQL { // it would commit
		alter = w.db.Conn()
	}
	for _, name := range names {
		f := schema.Field(schema.Index(w.config.field(name)))
		text := fmt.Sprintf("alter table %s add column %s%s %s", d.Quote(w.config.Name), absent, quoted(name), w.typeOf(f))
		if _, err := alter.ExecContext(ctx, w.engine.oneByOne(text)); err != nil && dberr.MySQLCode(err) != columnExists {
			return fmt.Errorf("table %s: add column %s: %w", w.config.Name, name, err)
		}
	}
	w.createdIn = t
	var err error
	if w.table, err = w.engine.describe(ctx, conn, w.config.Name); err != nil {
		return fmt.Errorf("table %s: look up its columns: %w", w.config.Name, err)
	}
	return nil
}

func (w *writer) warn(ignored []string) error {
	list := strings.Join(ignored, ", ")
	if len(ignored) == 0 || w.warned == list {
		return nil
	}
	w.warned = list
	if w.context == nil {
		return nil
	}
	if err := core.Warn(w.context(), fmt.Sprintf("table %s: fields not written, because it has no column for them: %s", w.config.Name, list)); err != nil {
		return fmt.Errorf("table %s: store the list of fields left out: %w", w.config.Name, err)
	}
	return nil
}

// An earlier run with other types may have made the table.
func (w *writer) noteEarlier(ctx context.Context, conn tx.Conn) error {
	var differences, cures []string
	d := w.db.Dialect()
	for _, name := range w.config.written(w.schema) {
		f := w.schema.Field(w.schema.Index(w.config.field(name)))
		want := w.engine.typeName(f.Kind)
		i := w.table.indexOf(name, d)
		switch {
		case i < 0 && w.config.Schema != schemaFail && w.config.Schema != "":
		case i < 0:
			differences = append(differences, fmt.Sprintf("it has no column %s", name))
			cures = append(cures, fmt.Sprintf("add column %s %s", quoted(name), want))
		case w.table.columns[i].kind != f.Kind && w.table.columns[i].kind != row.Null && w.table.columns[i].kind != row.String:
			differences = append(differences, fmt.Sprintf("its column %s is of type %s, but create would make it %s", name, w.table.columns[i].typeText(), want))
			cures = append(cures, fmt.Sprintf("alter column %s type %s", quoted(name), want))
		}
	}
	if len(differences) == 0 {
		return nil
	}
	rows, cure := "no rows", "drop table "+d.Quote(w.config.Name)
	var found int
	err := conn.QueryRowContext(ctx, "select count(*) from (select 1 from "+d.Quote(w.config.Name)+" limit 1) as one").Scan(&found)
	switch {
	case err != nil:
		return fmt.Errorf("table %s: look for rows: %w", w.config.Name, err)
	case found > 0:
		rows = "rows"
	}
	if d == tx.Postgres {
		cure += ", or alter table " + d.Quote(w.config.Name) + " " + strings.Join(cures, ", ")
	}
	w.earlier = fmt.Sprintf("; the table existed before this step: %s; it has %s; if it comes from an earlier definition: %s", strings.Join(differences, ", "), rows, cure)
	return nil
}

// SQLite drops trailing zeros of a decimal; a reader of the table adds them
// again if its type has the scale.
func (w *writer) typeOf(f *row.Field) string {
	name := w.engine.typeName(f.Kind)
	if f.Kind == row.DecimalKind && f.Scale != nil {
		switch w.db.Dialect() {
		case tx.SQLite:
			name = fmt.Sprintf("%s(30, %d)", name, *f.Scale)
		case tx.MySQL:
			name = fmt.Sprintf("decimal(65, %d)", min(*f.Scale, mysqlScale))
		case tx.Postgres:
		}
	}
	return name
}

// IF NOT EXISTS, because two jobs may create one table at the same moment.
func (w *writer) createStatement(schema *row.Schema) string {
	d := w.db.Dialect()
	var b strings.Builder
	fmt.Fprintf(&b, "create table if not exists %s (", d.Quote(w.config.Name))
	for i, name := range w.config.written(schema) {
		if i > 0 {
			b.WriteByte(',')
		}
		f := schema.Field(schema.Index(w.config.field(name)))
		typ := w.typeOf(f)
		if d == tx.MySQL && slices.Contains(w.config.Key, name) {
			typ = mysqlKey(typ)
		}
		fmt.Fprintf(&b, "\n  %s %s", quoted(name), typ)
		if !f.Nullable || slices.Contains(w.config.Key, name) {
			b.WriteString(" not null")
		}
	}
	if len(w.config.Key) > 0 {
		fmt.Fprintf(&b, ",\n  primary key (%s)", quotedList(w.config.Key))
	}
	b.WriteString("\n)")
	return b.String()
}
