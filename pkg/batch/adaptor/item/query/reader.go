package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/internal/txwork"
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

	keyset
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
	r := &reader{db: db, config: cfg, schema: schema}
	r.dialect, r.fetch, r.order = db.Dialect(), cfg.Fetch, keyColumns(cfg.Key)
	switch db.Dialect() {
	case tx.Postgres:
		r.engine = &postgres{}
	case tx.SQLite:
		r.engine = &sqlite{}
	case tx.MySQL:
		r.engine = &mysql{zeroIsNull: cfg.ZeroDates == zeroNull}
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
	txwork.Authored(ctx)
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
		if err := r.nextPage(ctx); err != nil {
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

func (r *reader) nextPage(ctx context.Context) error {
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

// Mark is the key of the last row read (rule C15a): rows that appear or disappear before it do not change
// the rows that a restart reads.
func (r *reader) Mark() any { return rowMark{r.read, r.done} }

// PositionAt returns the position after the row of the mark.
func (r *reader) PositionAt(m any) (item.Position, error) {
	at, ok := m.(rowMark)
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
func (r *reader) Position() (item.Position, error) { return r.position(rowMark{r.read, r.done}) }

func (r *reader) position(at rowMark) (item.Position, error) {
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

// IsPadded reports, after Open, whether a field comes from a column of type char(n), which ignores trailing
// blanks.
func (r *reader) IsPadded(field int) bool {
	return field < len(r.columns) && r.columns[field].oid == pgtype.BPCharOID
}
