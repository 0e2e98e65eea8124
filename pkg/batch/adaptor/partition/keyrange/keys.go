package keyrange

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	// leastRows is the number of rows of the smallest part that is worth its overhead.
	leastRows = 10_000
	// sampledBlocks for each part: its rows have a standard deviation of 1/sqrt(1000), 3 %, if each block has other keys.
	sampledBlocks = 1000
	// sampledShare: a table of 4,000 blocks or more for each part is sampled. For 16 parts these are 4 million rows of 100
	// bytes. Measured at 10 million: the sample takes 1 s, numbering all rows 3 s, and more if the table is not vacuumed and
	// its rows have another order.
	sampledShare = 4
	// leastSampled rows for each part: with fewer, most blocks are empty, or the rows are so wide that counting is fast.
	leastSampled = leastRows / sampledShare
)

// keys are the keys of the selected rows.
type keys struct {
	conn       tx.Conn
	dialect    tx.Dialect
	name       string // of the table, as configured
	column     string
	table, key string // quoted
	where      string // the condition in parentheses, or empty
	args       []any
}

func keysOf(ctx context.Context, db tx.Database, cfg config) (*keys, error) {
	d := db.Dialect()
	k := &keys{conn: tx.ConnOf(ctx, db), dialect: d, name: cfg.Table, column: cfg.Key, table: d.Quote(cfg.Table), key: quoted(cfg.Key)}
	if cfg.Where.IsZero() {
		return k, nil
	}
	txwork.Authored(ctx)
	text, values := cfg.Where.Render(d.Placeholder)
	args, err := sqlvalue.Args(values, sqlvalue.Bind(d))
	k.where, k.args = "(\n"+text+"\n)", args
	return k, err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (k *keys) from() string {
	if k.where == "" {
		return k.table
	}
	return k.table + "\nwhere " + k.where
}

// bounds reads in one statement the smallest and largest key, and whether some row is in no range.
func (k *keys) bounds(ctx context.Context) (low, high int64, empty bool, err error) {
	misfit := k.key + " is null"
	if k.dialect == tx.SQLite { // its columns may hold anything
		misfit = "typeof(" + k.key + ") <> 'integer'"
	}
	if k.where != "" {
		misfit += " and " + k.where
	}
	text := fmt.Sprintf("select min(%s), max(%s), exists (select 1 from %s where %s) from %s", k.key, k.key, k.table, misfit, k.from())
	var minKey, maxKey any
	var outside bool
	if err := k.conn.QueryRowContext(ctx, text, k.args...).Scan(&minKey, &maxKey, &outside); err != nil {
		return 0, 0, false, err
	}
	if outside {
		return 0, 0, false, errors.New("in some rows the key is null or not an integer, so they would be in no range; exclude them with `where`")
	}
	if minKey == nil {
		return 0, 0, true, nil
	}
	if low, err = integer(minKey); err == nil {
		high, err = integer(maxKey)
	}
	return low, high, false, err
}

// cuts returns the last keys of all parts but the last, which have about the same number of rows.
func (k *keys) cuts(ctx context.Context, wanted partcount.Wanted) ([]int64, error) {
	if wanted.Most() == 1 {
		return nil, nil
	}
	of, err := k.describe(ctx)
	if err != nil {
		return nil, err
	}
	if n := wanted.Most(); of.blocks/int64(n) >= sampledBlocks*sampledShare {
		if cuts, err := k.sampled(ctx, of.blocks, n); err != nil || cuts != nil {
			return cuts, err
		}
	}
	var rows int64
	if err := k.conn.QueryRowContext(ctx, "select count(*) from "+k.from(), k.args...).Scan(&rows); err != nil {
		return nil, err
	}
	n := min(int64(wanted.Of(rows, leastRows)), rows)
	switch {
	case n <= 1:
		return nil, nil
	case of.indexed:
		return k.stepped(ctx, rows, n)
	}
	return k.sorted(ctx, rows, n)
}

// stepped steps through the index, from part to part.
func (k *keys) stepped(ctx context.Context, rows, n int64) ([]int64, error) {
	end := func(parts int64) int64 { return (parts*rows + n - 1) / n }
	cuts := make([]int64, 0, n-1)
	last, args := "", []any(nil)
	for i := range n - 1 {
		skip := end(i+1) - end(i) - 1 // the rows of this part but its last one
		var x any
		err := k.conn.QueryRowContext(ctx, fmt.Sprintf("select %s from %s%s order by %s limit 1 offset %d", k.key, k.table, last, k.key, skip), args...).Scan(&x)
		if errors.Is(err, sql.ErrNoRows) { // of rows with equal keys, or deleted ones
			break
		}
		if err != nil {
			return nil, err
		}
		cut, err := integer(x)
		if err != nil {
			return nil, err
		}
		cuts = append(cuts, cut)
		last, args = " where "+k.key+" > "+k.dialect.Placeholder(1), []any{cut}
	}
	return cuts, nil
}

// sorted numbers all rows in one statement.
func (k *keys) sorted(ctx context.Context, rows, n int64) ([]int64, error) {
	text := fmt.Sprintf("select k from (select %s as k, row_number() over (order by %s) as i from %s) x where i < %d and (i * %d) %% %d < %d order by i",
		k.key, k.key, k.from(), rows, n, rows, n)
	return k.list(ctx, text, k.args...)
}

// sampled numbers the rows of some blocks. It returns nil if they are too few.
func (k *keys) sampled(ctx context.Context, blocks int64, n int) ([]int64, error) {
	percent := 100 * sampledBlocks * float64(n) / float64(blocks)
	return k.list(ctx, fmt.Sprintf(`with s as (select %s as k from %s tablesample system (%f)), c as (select count(*) as rows from s)
select k from (select k, row_number() over (order by k) as i from s) x, c where c.rows >= %d and i < c.rows and (i * %d) %% c.rows < %d order by i`,
		k.key, k.table, percent, leastSampled*n, n, n))
}

func (k *keys) list(ctx context.Context, text string, args ...any) (cuts []int64, err error) {
	rows, err := k.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var x any
		if err := rows.Scan(&x); err != nil {
			return nil, err
		}
		if x == nil { // a row that arrived after bounds
			continue
		}
		cut, err := integer(x)
		if err != nil {
			return nil, err
		}
		cuts = append(cuts, cut)
	}
	return cuts, rows.Err()
}

func integer(x any) (int64, error) {
	if text, is := x.([]byte); is { // of MySQL
		x = string(text)
	}
	if n, is := x.(uint64); is && n <= math.MaxInt64 {
		return int64(n), nil
	}
	n, ok := x.(int64)
	if !ok {
		return 0, fmt.Errorf("%v is a %T, not an integer: the key must be a column of integers", x, x)
	}
	return n, nil
}
