package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type plan struct {
	config     *config
	into       string
	relation   string
	schema     *row.Schema
	cols       []column
	fields     []int
	keys       []int
	onPostgres bool
	fits       []bool
	limits     []*limit
	copies     bool
	qualified  string // the table with its schema; "" if COPY has texts
	drops      bool
	rekeys     bool
	counts     bool
	ignored    []string // fields without a column that are left out
	cleared    string
	leaveOut   func(n int64) error
	onlyKey    bool
	packet     int
	texts      map[int]string
	same       pgxconn.Begin // sameTable
	changed    atomic.Bool   // the table is not as it was
}

func newPlan(cfg *config, schema *row.Schema, table *relation, d tx.Dialect) (*plan, error) {
	if schema.IsOpen() {
		return nil, errors.New("the items' columns are not known")
	}
	if err := cfg.checkFields(schema); err != nil {
		return nil, err
	}
	p := &plan{config: cfg, schema: schema, copies: table.copies, drops: table.drops, rekeys: table.rekeys && cfg.mode() == modeUpsert, texts: map[int]string{}, onPostgres: d == tx.Postgres, onlyKey: table.onlyKey, packet: table.packet}
	p.counts = cfg.LeftOut != leftOutIgnore && !table.uncounted
	names := make([]string, len(table.columns))
	for i := range table.columns {
		names[i] = table.columns[i].name
	}
	var errs []error
	for _, name := range cfg.written(schema) {
		isKey := slices.Contains(cfg.Key, name)
		if cfg.mode() == modeDelete && !isKey {
			continue
		}
		i := table.indexOf(name, d)
		switch {
		case i < 0 && cfg.Schema == schemaIgnore && !isKey:
			p.ignored = append(p.ignored, cfg.field(name))
			continue
		case i < 0:
			errs = append(errs, fmt.Errorf("field %s has no column %s%s", cfg.field(name), name, nearest.Hint(name, names)))
			continue
		case table.columns[i].refused != "" && !(isKey && cfg.onlyCompares()):
			errs = append(errs, fmt.Errorf("field %s: %s", cfg.field(name), table.columns[i].refused))
			continue
		}
		if isKey {
			p.keys = append(p.keys, len(p.cols))
		}
		p.add(table.columns[i], schema.Index(cfg.field(name)), d)
	}
	p.clearDeleted(table, d)
	p.qualified = nameForBinary(p, table)
	if len(p.cols) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("the items have no field to write"))
	}
	if cfg.mode() == modeUpdate && len(p.cols) == len(p.keys) {
		errs = append(errs, errors.New("mode update has no column to change except the key"))
	}
	return p, errors.Join(errs...)
}

// Values of another kind are converted to the column's kind, so that both
// databases store the same value or refuse the item alike. PostgreSQL itself
// converts everything but bytes and lists to text.
func (p *plan) add(c column, field int, d tx.Dialect) {
	from := p.schema.Field(field).Kind
	fits := from != c.kind && c.kind != row.Null
	if d == tx.Postgres && c.kind == row.String && from != row.BytesKind && !from.IsList() {
		fits = false
	}
	l := c.limit
	if l != nil && l.from != row.Null && l.from != from && !fits {
		l = nil
	}
	if l == nil && c.taken != nil && from == row.String {
		l = &limit{keep: func(v row.Value) (row.Value, change) { return v, unchanged }}
	}
	p.cols, p.fields = append(p.cols, c), append(p.fields, field)
	p.fits, p.limits = append(p.fits, fits), append(p.limits, l)
}

func (p *plan) isKey(i int) bool { return slices.Contains(p.keys, i) }

func (p *plan) value(record []row.Value, i int) (row.Value, error) {
	f := p.schema.Field(p.fields[i])
	v := record[p.fields[i]]
	if v.Kind() != f.Kind {
		if err := f.Check(v); err != nil {
			return v, err
		}
		if p.config.mode() != modeInsert && p.isKey(i) {
			return v, exception.InvalidItem("", exception.ClassInvalidItem, fault.Named(f.Name, "a key is null"))
		}
	}
	if err := sqlvalue.Check(v); err != nil {
		return v, exception.InvalidItem("", exception.ClassInvalidItem, row.FieldError(f.Name, err))
	}
	if p.fits[i] || p.limits[i] != nil {
		var err error
		if v, err = p.fitted(v, i); err != nil {
			return v, err
		}
	}
	return v, p.keepsDigits(v, i)
}

// A value that the column would change is an invalid item, except for the key
// of an upsert, which is the value that the column stores (rule D8a).
func (p *plan) fitted(v row.Value, i int) (row.Value, error) {
	c := &p.cols[i]
	if v.IsNull() {
		return v, nil
	}
	if p.fits[i] && !(c.taken != nil && isArray(v)) {
		fitting, ok := sqlvalue.ConvertIn(v, c.kind, c.zone)
		switch {
		case !ok:
			return v, p.unfit(v, i, hint(v, c.kind))
		}
		if err := sqlvalue.Check(fitting); err != nil {
			return v, exception.InvalidItem("", exception.ClassInvalidItem, row.FieldError(p.schema.Field(p.fields[i]).Name, err))
		}
		if !c.verbatim || v.Kind() != row.String {
			v = fitting
		}
	}
	if c.taken != nil && v.Kind() == row.String && (isArray(v) || !c.kind.IsList()) {
		text, why, ok := c.taken.fitted(v.Str())
		if !ok {
			return v, p.unfit(v, i, why)
		}
		return row.StringValue(text), nil
	}
	if l := p.limits[i]; l != nil {
		stored, how := l.keep(v)
		if how == unfit || how == rounded && !(p.config.mode() == modeUpsert && p.isKey(i)) {
			return v, p.unfit(v, i, l.why)
		}
		v = stored
	}
	return v, nil
}

func (p *plan) unfit(v row.Value, i int, why string) error {
	f, c := p.schema.Field(p.fields[i]), &p.cols[i]
	if why != "" {
		why = " (" + why + ")"
	}
	return exception.InvalidItem("", exception.ClassInvalidItem,
		fault.Named(f.Name, "%s does not fit column %s of type %s%s", f.Quoted(sqlvalue.Quote(v)), c.name, c.typeText(), why))
}

// keepsDigits refuses a decimal if the column would silently drop some of its digits.
func (p *plan) keepsDigits(v row.Value, i int) error {
	switch kind := v.Kind(); {
	case kind == row.DecimalKind:
		return p.keeps(v, i, "")
	case kind == row.JSONKind && p.cols[i].binary:
		return p.keeps(numberOf(v), i, "")
	case kind.IsList() && kind == row.ListOf(row.DecimalKind):
		for n, e := range v.Elements() {
			if err := p.keeps(e, i, fmt.Sprintf("[%d]", n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plan) keeps(v row.Value, i int, element string) error {
	c := &p.cols[i]
	if v.IsNull() || !c.isDecimal() && !c.binary {
		return nil
	}
	d, cure := v.Decimal().Reduce(), ""
	switch {
	case c.scale != nil && *c.scale < 0 && !isMultiple(d, -*c.scale):
		cure = fmt.Sprintf("the column keeps multiples of 10^%d", -*c.scale)
	case c.scale != nil && *c.scale >= 0 && d.Scale() > *c.scale:
		cure = fmt.Sprintf("the column has %d digits after the point; round(x, %d) drops the rest", *c.scale, *c.scale)
	case c.binary && d.Digits() > sqlvalue.ExactDigits && !isInt64(d):
		cure = fmt.Sprintf("SQLite keeps %d digits in a column of this type; declare it text", sqlvalue.ExactDigits)
	default:
		return nil
	}
	f := p.schema.Field(p.fields[i])
	return exception.InvalidItem("", exception.ClassInvalidItem,
		fault.Named(f.Name+element, "%s does not fit column %s of type %s (%s)", f.Quoted(v.String()), c.name, c.typeText(), cure))
}

func (p *plan) key(record []row.Value) string {
	var b strings.Builder
	for n, i := range p.keys {
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", p.cols[i].name, record[p.fields[i]])
	}
	return b.String()
}

func (p *plan) changesRows() bool { return len(p.cols) > len(p.keys) }

func (p *plan) tookAll(took int64, sent int) error {
	if !p.counts || took >= int64(sent) {
		return nil
	}
	if p.leaveOut != nil {
		return p.leaveOut(int64(sent) - took)
	}
	return exception.Fatal("", leftOut(int64(sent)-took, int64(sent)))
}

// Rows that the table did not take are not the fault of an item.
func leftOut(n, of int64) error {
	return fmt.Errorf("the table took %d of %d rows: a trigger, a rule or a conflict clause of the table leaves rows out; if it puts them elsewhere, set `left_out: ignore`", of-n, of)
}

// A key that the database takes for equal but that is a different text or
// number is written too: the last record wins with all of its columns.
func (p *plan) action() string {
	set, inexact := make([]string, 0, len(p.cols)), p.changesRows() && p.onPostgres && !p.exactKeys()
	for i := range p.cols {
		if name := quoted(p.cols[i].name); !p.isKey(i) || inexact {
			set = append(set, name+" = excluded."+name)
		}
	}
	if p.cleared != "" {
		set = append(set, p.cleared)
	}
	if len(set) == 0 {
		return "nothing"
	}
	return "update set " + strings.Join(set, ", ")
}

func (p *plan) conflict() string {
	text := "(" + quotedList(p.config.Key) + ")"
	if p.config.Where != "" {
		text += " where " + p.config.Where
	}
	return text
}

func (p *plan) clearDeleted(table *relation, d tx.Dialect) {
	name := p.config.deletedColumn()
	i := table.indexOf(name, d)
	if p.config.DeleteMissing != deleteSoft || i < 0 || slices.ContainsFunc(p.cols, func(c column) bool { return c.name == table.columns[i].name }) {
		return
	}
	p.cleared = quoted(name) + " = null"
	if table.columns[i].kind == row.Bool {
		p.cleared = quoted(name) + " = false"
	}
}

func (p *plan) missing(record []row.Value) error {
	return exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("there is no row with %s", p.key(record)))
}
