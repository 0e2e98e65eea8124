package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// catalogue finds which columns are never null, and refuses a key that is not stable.
func (r *reader) catalogue(ctx context.Context, described []resultColumn) error {
	plain, is := plainOf(r.config.SQL, r.db.Dialect())
	if !is {
		return nil
	}
	if err := r.warnUnread(plain, described); err != nil {
		return err
	}
	known, err := r.engine.notNull(ctx, r.conn(), plain)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	for i := range described {
		name, named := plain.columns[described[i].name]
		if !named && plain.star {
			name = described[i].name
		}
		described[i].notNull = known.notNull[name]
	}
	for _, k := range r.order {
		name := plain.columns[k.name]
		if known.rowid != nil && !*known.rowid && slices.Contains([]string{"rowid", "_rowid_", "oid"}, strings.ToLower(name)) && !known.has[name] {
			return errors.New("key " + k.name + ": the rowid of " + plain.table + " is not a column of it, and VACUUM may change it between two attempts: " +
				"declare an integer primary key, or use `snapshot: true`, which reads without a key")
		}
	}
	return nil
}

// Columns that `select *` has and the item lacks may be new in the table.
func (r *reader) warnUnread(plain plainTable, described []resultColumn) error {
	if r.context == nil || r.schema.IsOpen() || !plain.star {
		return nil
	}
	read := map[string]bool{}
	for i := range r.schema.Len() {
		f := r.schema.Field(i)
		read[f.Name], read[f.Source()] = true, true
	}
	var unread []string
	for _, c := range described {
		if !read[c.name] {
			unread = append(unread, c.name)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	columns := "column " + unread[0]
	if len(unread) > 1 {
		columns = "columns " + strings.Join(unread, ", ")
	}
	return core.Warn(r.context(), fmt.Sprintf("%s of table %s: not in the item, so not read; add new columns to `item`, or select columns by name", columns, plain.table))
}

// Columns without a field are not fetched.
func (r *reader) match(described []resultColumn) error {
	names := make([]string, len(described))
	index := map[string]int{}
	var errs []error
	for i, c := range described {
		if _, twice := index[c.name]; twice {
			errs = append(errs, fmt.Errorf("column %s appears twice: rename one of them with AS", c.name))
		}
		names[i], index[c.name] = c.name, i
	}
	open := r.schema.IsOpen()
	if open && len(errs) == 0 {
		if err := r.describeItems(described); err != nil {
			return err
		}
	}
	r.columns, r.keys = r.columns[:0], r.keys[:0]
	for i := range r.schema.Len() {
		f := r.schema.Field(i)
		at, ok := index[f.Name]
		if !ok {
			at, ok = index[f.Source()]
		}
		if !ok {
			errs = append(errs, fmt.Errorf("field %s has no column%s", f.Name, nearest.Hint(f.Name, names)))
			continue
		}
		c := described[at]
		c.field, c.guessed = f, c.guessed && open
		if isTime := c.kind == row.DateKind || c.kind == row.Timestamp; isTime && f.Format != "" {
			stored := row.Field{Name: f.Name, Kind: f.Kind, Zone: f.Zone, Nullable: f.Nullable, Nulls: f.Nulls, Default: f.Default, Coerce: f.Coerce, Hidden: f.Hidden}
			c.stored = &stored
		}
		if c.kind.IsList() {
			stored, err := arrayField(f, c.kind)
			errs = append(errs, err)
			c.stored = stored
		}
		if err := r.engine.fits(&c); err != nil {
			errs = append(errs, err)
		}
		r.columns = append(r.columns, c)
	}
	for _, k := range r.order {
		i := r.schema.Index(k.name)
		if i < 0 {
			errs = append(errs, k.unknown(names, "key %s is not a column of the result"))
		}
		r.keys = append(r.keys, i)
	}
	return errors.Join(errs...)
}

func (r *reader) describeItems(described []resultColumn) error {
	fields := make([]row.Field, 0, len(described))
	for _, c := range described {
		fields = append(fields, row.Field{Name: c.name, Kind: c.kind, Nullable: !c.notNull})
	}
	schema, err := row.NewSchema(fields...)
	if err == nil {
		r.schema = schema.InZone(r.config.zone)
	}
	return err
}
