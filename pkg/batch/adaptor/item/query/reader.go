package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// reader reads records along a key. Not for concurrent use.
type reader struct {
	db     tx.Database
	config config
	schema *row.Schema
	engine engine

	sql       string
	args      []any
	columns   []resultColumn
	order     []keyColumn
	keys      []int
	plain     pageSQL
	comparing pageSQL // also asks the database whether a key equals the previous one
	compares  bool    // comparing is used

	// the position at the end of the previous instance, or nil
	previous func(ctx context.Context) (item.Position, error)
	context  func() *core.ExecutionContext
	since    *sinceRange // nil means all rows

	// cursor reads a snapshot in the transaction snapshot; nil means pages along the key.
	cursor   cursor
	snapshot tx.Handle
	release  func()

	page  page
	at    int
	limit int
	last  bool
	done  []row.Value // the raw key of the last row returned
	read  int64       // includes the items before a restart
}

type resultColumn struct {
	name string
	// inner is the column's name in an outer statement, if different: SQLite uses column2 for true.
	inner string
	field *row.Field
	// stored is field with the text form of a column of dates, times or lists: ISO 8601, and arrays.
	stored *row.Field
	oid    uint32
	typ    string
	kind   row.Kind
	// The database takes two values for equal only if they are identical.
	exact bool
	// declared NOT NULL
	notNull bool
	// The kind comes from the first values: as text, any value fits.
	guessed bool
}

func (c *resultColumn) source() string { return quoted(cmp.Or(c.inner, c.name)) }

type page interface {
	len() int
	// A misfit is an invalid item.
	value(row, column int) (row.Value, error)
	// raw is a value as in the database, by which keys are compared: 007 in a column of text is not 7.
	raw(row, column int) (row.Value, error)
}

type engine interface {
	describe(ctx context.Context, conn tx.Conn, text string, args []any) ([]resultColumn, error)
	fits(c *resultColumn) error
	output(c *resultColumn) string
	// judge determines which key columns are exact, and refuses columns that cannot be a key.
	judge(ctx context.Context, conn tx.Conn, text string, args []any, keys []*resultColumn) error
	answer() resultColumn
	bind(v row.Value) any
	notNull(ctx context.Context, conn tx.Conn, of plainTable) (catalogued, error)
	cursor(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (cursor, error)
	// fetch invalidates the previous page.
	fetch(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (page, error)
}

type cursor interface {
	// fewer than n rows means that there are no more.
	next(ctx context.Context, n int) (page, error)
	close() error
}

// newReader makes a reader; an open schema is replaced by the database's description.
func newReader(db tx.Database, cfg config, schema *row.Schema) (*reader, error) {
	if schema == nil {
		return nil, errors.New("query: the items have no record form")
	}
	if err := errors.Join(cfg.Validate(), cfg.check(schema)); err != nil {
		return nil, err
	}
	if cfg.Fetch == 0 {
		cfg.Fetch = defaultFetch
	}
	r := &reader{db: db, config: cfg, schema: schema, order: keyColumns(cfg.Key)}
	switch db.Dialect() {
	case tx.Postgres:
		r.engine = &postgres{}
	case tx.SQLite:
		r.engine = &sqlite{}
	default:
		return nil, fmt.Errorf("query: the dialect %s has no reader", db.Dialect())
	}
	text, args := cfg.SQL.Render(db.Dialect().Placeholder)
	var err error
	if r.args, err = sqlvalue.Args(args, r.engine.bind); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	r.sql = strings.TrimRight(text, "; \t\r\n")
	return r, nil
}

func (r *reader) explain(sent string, err error) error {
	return sqlerr.In(r.config.SQL, r.db.Dialect(), sent, err)
}

// Open describes the statement, refuses a null in the key, and goes to the position.
func (r *reader) Open(ctx context.Context, at item.Position) error {
	tx.Authored(ctx)
	err := r.open(ctx, at)
	if err != nil {
		err = errors.Join(fmt.Errorf("query: %w", err), r.Close(ctx))
	}
	return err
}

func (r *reader) open(ctx context.Context, at item.Position) error {
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	described, err := r.engine.describe(ctx, conn, "select * from (\n"+r.sql+"\n) q limit 0", r.args)
	if err != nil {
		return r.explain("select * from (\n"+r.sql+"\n) q limit 0", err)
	}
	if err := r.catalogue(ctx, described); err != nil {
		return err
	}
	if err := r.match(described); err != nil {
		return err
	}
	var p position
	if len(at) > 0 {
		if err := json.Unmarshal(at, &p); err != nil {
			return fmt.Errorf("cannot restart: the stored position is unreadable: %w", err)
		}
	}
	if err := r.narrow(ctx, p.Since); err != nil {
		return fmt.Errorf("since %s: %w", r.config.Since, err)
	}
	if err := r.resume(p); err != nil {
		return err
	}
	if r.config.Snapshot {
		err = r.declare(ctx)
	} else if err = errors.Join(r.refuseNulls(ctx), r.judgeKey(ctx)); err == nil {
		r.statements()
	}
	return err
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

// an array with ISO 8601 and decimal points, whatever the field's own text form
func arrayField(f *row.Field, column row.Kind) (*row.Field, error) {
	stored := row.Field{Name: f.Name, Kind: column, Nullable: true, Nulls: []string{}, Hidden: f.Hidden}
	if f.Kind.IsList() {
		stored.Kind, stored.Scale = f.Kind, f.Scale
	}
	if f.Coerce != row.CoerceError {
		stored.Coerce = row.CoerceConvert
	}
	schema, err := row.NewSchema(stored)
	if err != nil {
		return nil, err
	}
	return schema.Field(0), nil
}

func arrayOf(c *resultColumn, text string) (row.Value, error) {
	f := c.field
	if f.Kind != row.JSONKind && !f.Kind.IsList() {
		return f.Parse(text)
	}
	list, err := c.stored.Parse(text)
	switch {
	case err != nil:
		return f.Coerced(text, err)
	case f.Kind == row.JSONKind:
		list = row.JSONValue(row.JSON(list.String()))
	}
	return f.Known(list)
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

// The comparison with the last key would silently skip rows with a null key.
func (r *reader) refuseNulls(ctx context.Context) error {
	tests := make([]string, len(r.order))
	for i := range r.order {
		tests[i] = r.keyColumn(i) + " is null"
	}
	text := "select exists (select 1 from (\n" + r.sql + "\n) q where " + strings.Join(tests, " or ") + ")"
	var found bool
	if err := r.conn().QueryRowContext(ctx, text, r.args...).Scan(&found); err != nil {
		return fmt.Errorf("look for a null in the key: %w", r.explain(text, err))
	}
	if found {
		return fmt.Errorf("the key (%s) is null in some rows: exclude them, or choose another key", strings.Join(r.config.Key, ", "))
	}
	return nil
}

func (r *reader) judgeKey(ctx context.Context) error {
	keys := make([]*resultColumn, len(r.keys))
	for i := range keys {
		keys[i] = &r.columns[r.keys[i]]
	}
	if err := r.engine.judge(ctx, r.conn(), r.sql, r.args, keys); err != nil {
		return err
	}
	r.compares = !slices.ContainsFunc(keys, func(c *resultColumn) bool { return c.exact || c.isNumeric() || isExact(c.kind) })
	return nil
}

// Schema has the fields of the item type, or the described ones.
func (r *reader) Schema() *row.Schema { return r.schema }

// Meta returns the ordinal of the last item read.
func (r *reader) Meta() item.Meta { return item.Meta{Line: r.read} }

// ReadRecord reads the next row. A row that does not fit the fields is an invalid item, and is consumed.
func (r *reader) ReadRecord(ctx context.Context, dst []row.Value) error {
	if r.at == r.limit {
		if r.last {
			return io.EOF
		}
		if err := r.fetch(ctx); err != nil {
			return fmt.Errorf("query: %w", err)
		}
		if r.limit == 0 {
			return io.EOF
		}
	}
	at := r.at
	key, err := r.key(r.page, at, nil) // of its own: marks keep it
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	r.done = key
	r.at++
	r.read++
	for i := range r.columns {
		v, err := r.page.value(at, i)
		if err != nil {
			return item.Consumed(r.Meta(), fmt.Errorf("query: row with %s: %w", r.keyOf(at), err))
		}
		dst[i] = v
	}
	return nil
}

func (r *reader) fetch(ctx context.Context) error {
	if r.config.Snapshot {
		return r.fetchSnapshot(ctx)
	}
	p, err := r.fetchPage(ctx)
	if err != nil {
		return err
	}
	r.page, r.at, r.limit = p, 0, min(p.len(), r.config.Fetch)
	r.last = p.len() <= r.config.Fetch
	return nil
}

type position struct {
	Read int64      `json:"read"`
	Key  []keyValue `json:"key"`
	// Since is nil for all rows.
	Since    *sinceRange `json:"since,omitempty"`
	Snapshot bool        `json:"snapshot,omitempty"`
}

type keyValue struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Value string `json:"value"`
	Desc  bool   `json:"desc,omitempty"`
}

type mark struct {
	read int64
	key  []row.Value
}

// Mark is the key of the last row read (rule C15a): rows that appear or disappear before it do not change
// the rows that a restart reads.
func (r *reader) Mark() any { return mark{r.read, r.done} }

// PositionAt returns the position after the row of the mark.
func (r *reader) PositionAt(m any) (item.Position, error) {
	at, ok := m.(mark)
	if !ok {
		return nil, fmt.Errorf("query: a %T is not a mark of this reader", m)
	}
	return r.position(at)
}

// IndependentOf implements item.Independent: pages are as old as their fetch, so writes to its own database
// may change them.
func (r *reader) IndependentOf(database string) bool {
	return r.config.Snapshot || r.db.Name() != database
}

// Position is the key of the last row that was read.
func (r *reader) Position() (item.Position, error) { return r.position(mark{r.read, r.done}) }

func (r *reader) position(at mark) (item.Position, error) {
	if at.read == 0 && r.since == nil {
		return nil, nil
	}
	p := position{Read: at.read, Since: r.since, Snapshot: r.config.Snapshot}
	for i, v := range at.key {
		k := stored(r.order[i].name, v)
		k.Desc = r.order[i].desc
		p.Key = append(p.Key, k)
	}
	return json.Marshal(p)
}

func (r *reader) resume(p position) error {
	r.page, r.at, r.limit, r.last, r.done, r.read = nil, 0, 0, r.since.isEmpty(), nil, 0
	if r.config.Snapshot || p.Snapshot {
		return refuseResume(p)
	}
	if len(p.Key) == 0 {
		return nil
	}
	if len(p.Key) != len(r.keys) {
		return fmt.Errorf("the last commit was at a key of %d columns, not at %s", len(p.Key), strings.Join(r.config.Key, ", "))
	}
	for i, k := range p.Key {
		if before := (keyColumn{k.Name, k.Desc}); before != r.order[i] {
			return fmt.Errorf("the last commit was at key %s, not %s: it cannot continue from there", before, r.order[i])
		}
		v, err := k.value()
		if err != nil {
			return fmt.Errorf("the position of the last commit: %w", err)
		}
		r.done = append(r.done, v)
	}
	r.read = p.Read
	return nil
}

func (k *keyValue) value() (row.Value, error) {
	kind, ok := row.KindByName(k.Kind)
	if !ok {
		return row.Value{}, fmt.Errorf("kind %q is unknown", k.Kind)
	}
	return (&row.Field{Name: k.Name, Kind: kind, Nulls: []string{}}).Parse(k.Value)
}

func stored(name string, v row.Value) keyValue {
	return keyValue{Name: name, Kind: v.Kind().String(), Value: v.String()}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
