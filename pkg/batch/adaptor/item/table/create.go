package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// creator is a Writer that creates its table: in the transaction of the first rows, and where there are
// none in one of its own at the end (rule TW5).
type creator struct{ *Writer }

// Complete implements item.Completer.
func (c creator) Complete(ctx context.Context) error { return c.createAbsent(ctx) }

// PrepareParts implements item.PartsPreparer: parts that run at once would wait for the first of them.
func (w *Writer) PrepareParts(ctx context.Context) error { return w.createAbsent(ctx) }

// createAbsent creates the table in the transaction that ctx carries, if it is absent. Only items tell
// the columns of an open schema: without one there is no table.
func (w *Writer) createAbsent(ctx context.Context) error {
	t, ok := tx.From(ctx, w.db.Name())
	if !ok {
		return w.noTransaction()
	}
	w.forgetOld(t)
	if !w.config.Create || w.schema.IsOpen() {
		return nil
	}
	return w.look(ctx, t.Conn(), w.schema)
}

// noteEarlier notes how the table that is there differs from the one that the items would make: an
// earlier run with other types may have made it.
func (w *Writer) noteEarlier(ctx context.Context, conn tx.Conn) error {
	var differences, cures []string
	d := w.db.Dialect()
	for _, name := range w.config.written(w.schema) {
		f := w.schema.Field(w.schema.Index(w.config.field(name)))
		want := w.engine.typeName(f.Kind)
		i := slices.IndexFunc(w.table.columns, func(c column) bool {
			return c.name == name || d == tx.SQLite && strings.EqualFold(c.name, name)
		})
		switch {
		case i < 0:
			differences = append(differences, fmt.Sprintf("it has no column %s", name))
			cures = append(cures, fmt.Sprintf("add column %s %s", quoted(name), want))
		case w.table.columns[i].kind != f.Kind && w.table.columns[i].kind != row.Null && w.table.columns[i].kind != row.String:
			differences = append(differences, fmt.Sprintf("its column %s is of type %s, and create would make it %s", name, w.table.columns[i].typeText(), want))
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
	w.earlier = fmt.Sprintf("; the table was there before this step: %s; it has %s; if it is from an earlier definition: %s", strings.Join(differences, ", "), rows, cure)
	return nil
}

// createStatement is the CREATE TABLE for items of the schema. Two jobs may
// create one table at the same moment, hence the IF NOT EXISTS.
func (w *Writer) createStatement(schema *row.Schema) string {
	d := w.db.Dialect()
	var b strings.Builder
	fmt.Fprintf(&b, "create table if not exists %s (", d.Quote(w.config.Name))
	for i, name := range w.config.written(schema) {
		if i > 0 {
			b.WriteByte(',')
		}
		f := schema.Field(schema.Index(w.config.field(name)))
		fmt.Fprintf(&b, "\n  %s %s", quoted(name), w.engine.typeName(f.Kind))
		if !f.Nullable {
			b.WriteString(" not null")
		}
	}
	if len(w.config.Key) > 0 {
		fmt.Fprintf(&b, ",\n  primary key (%s)", quotedList(w.config.Key))
	}
	b.WriteString("\n)")
	return b.String()
}
