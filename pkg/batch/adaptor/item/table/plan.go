package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// plan says which field goes where, for one schema.
type plan struct {
	config *Config
	into   string // the table of the statements, quoted
	schema *row.Schema
	cols   []column
	fields []int          // fields[i] goes to cols[i]
	keys   []int          // places in cols
	fits   []bool         // values for cols[i] are made to fit its kind
	copies bool           // as in relation
	texts  map[int]string // the statements, by what the engine says of them
}

// newPlan matches fields and columns, and says everything that does not fit.
func newPlan(config *Config, schema *row.Schema, table *relation, d tx.Dialect) (*plan, error) {
	if schema.IsOpen() {
		return nil, errors.New("the items' columns are not known")
	}
	if err := config.check(schema); err != nil {
		return nil, err
	}
	p := &plan{config: config, schema: schema, copies: table.copies, texts: map[int]string{}}
	names := make([]string, len(table.columns))
	for i := range table.columns {
		names[i] = table.columns[i].name
	}
	var errs []error
	for _, name := range config.written(schema) {
		isKey := slices.Contains(config.Key, name)
		if config.mode() == Delete && !isKey {
			continue
		}
		i := slices.IndexFunc(names, func(n string) bool { return n == name || (d == tx.SQLite && strings.EqualFold(n, name)) })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("field %s has no column %s%s", config.field(name), name, nearest.Hint(name, names)))
			continue
		case table.columns[i].refused != "" && !(isKey && config.onlyCompares()):
			errs = append(errs, fmt.Errorf("field %s: %s", config.field(name), table.columns[i].refused))
			continue
		}
		if isKey {
			p.keys = append(p.keys, len(p.cols))
		}
		p.add(table.columns[i], schema.Index(config.field(name)), d)
	}
	if len(p.cols) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("the items have no field to write"))
	}
	if config.mode() == Update && len(p.cols) == len(p.keys) {
		errs = append(errs, errors.New("mode update has nothing to change besides the key"))
	}
	return p, errors.Join(errs...)
}

// add lets a field go to a column. Values of another kind are made to fit that of the
// column, so that both databases store the same, or refuse the item alike. PostgreSQL
// reads texts by itself, and makes texts of everything but bytes and lists.
func (p *plan) add(c column, field int, d tx.Dialect) {
	from := p.schema.Field(field).Kind
	fits := from != c.kind && c.kind != row.Null
	if d == tx.Postgres && (from == row.String || c.kind == row.String && from != row.BytesKind && !from.IsList()) {
		fits = false
	}
	p.cols, p.fields, p.fits = append(p.cols, c), append(p.fields, field), append(p.fits, fits)
}

func (p *plan) isKey(i int) bool { return slices.Contains(p.keys, i) }

// value returns the value of record that goes to column i, checked: it fits the
// field, it fits a database, and a key is not null.
func (p *plan) value(record []row.Value, i int) (row.Value, error) {
	f := p.schema.Field(p.fields[i])
	v := record[p.fields[i]]
	if v.Kind() != f.Kind {
		if err := f.Check(v); err != nil {
			return v, err
		}
		if p.config.mode() != Insert && p.isKey(i) {
			return v, exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s: a key is null", f.Name))
		}
	}
	if err := sqlvalue.Check(v); err != nil {
		return v, exception.InvalidItem("", exception.ClassInvalidItem, row.FieldError(f.Name, err))
	}
	if p.fits[i] {
		c := &p.cols[i]
		fitting, ok := sqlvalue.Convert(v, c.kind)
		if !ok {
			return v, exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s: %s does not fit column %s of type %s", f.Name, f.Quoted(sqlvalue.Quote(v)), c.name, c.typ))
		}
		v = fitting
	}
	return v, p.keepsDigits(v, i)
}

// keepsDigits refuses a decimal of which the column would drop digits without a word.
func (p *plan) keepsDigits(v row.Value, i int) error {
	c, name := &p.cols[i], p.schema.Field(p.fields[i]).Name
	switch v.Kind() {
	case row.DecimalKind:
		return p.keeps(v, i, name)
	case row.JSONKind:
		if c.binary {
			return p.keeps(numberOf(v), i, name)
		}
	case row.ListOf(row.DecimalKind):
		for n, e := range v.Elements() {
			if err := p.keeps(e, i, fmt.Sprintf("%s[%d]", name, n)); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

// keeps is keepsDigits of a decimal or null, which messages call by name.
func (p *plan) keeps(v row.Value, i int, name string) error {
	c := &p.cols[i]
	if v.IsNull() || !c.isDecimal() && c.kind != row.JSONKind {
		return nil
	}
	d, cure := v.Decimal().Reduce(), ""
	switch {
	case c.scale != nil && d.Scale() > *c.scale:
		cure = fmt.Sprintf("the column has %d digits behind the point; round(x, %d) drops more", *c.scale, *c.scale)
	case c.binary && d.Digits() > sqlvalue.ExactDigits && !isInt64(d):
		cure = fmt.Sprintf("SQLite keeps %d digits in a column of this type; declare it text", sqlvalue.ExactDigits)
	default:
		return nil
	}
	return exception.InvalidItem("", exception.ClassInvalidItem,
		fmt.Errorf("field %s: %s does not fit column %s of type %s (%s)", name, p.schema.Field(p.fields[i]).Quoted(v.String()), c.name, c.typ, cure))
}

// isDecimal reports whether the column, or each element of it, is a decimal.
func (c *column) isDecimal() bool {
	return c.kind == row.DecimalKind || c.kind == row.ListOf(row.DecimalKind)
}

// numberOf is the decimal that JSON is, or null.
func numberOf(v row.Value) row.Value {
	if d, err := row.ParseDecimal(string(v.JSON())); err == nil {
		return row.DecimalValue(d)
	}
	return row.Value{}
}

func isInt64(d row.Decimal) bool {
	_, _, whole := d.Int()
	return whole
}

// key describes the key of a record for messages.
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

// missing is the error of an update whose row is not there.
func (p *plan) missing(record []row.Value) error {
	return exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("there is no row with %s", p.key(record)))
}
