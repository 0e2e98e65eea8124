//test:plain

package table

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// The rows of W1: about 86 bytes of text, with a primary key.
const benchTable = "create table load (id bigint primary key, account bigint not null, name text not null, city text not null, born text not null, score double precision not null)"

func benchSchema(b *testing.B) *row.Schema {
	return schema(b, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "account", Kind: row.Int}, row.Field{Name: "name", Kind: row.String},
		row.Field{Name: "city", Kind: row.String}, row.Field{Name: "born", Kind: row.String}, row.Field{Name: "score", Kind: row.Float})
}

func benchChunk(size int) [][]row.Value {
	chunk := make([][]row.Value, size)
	for i := range chunk {
		chunk[i] = []row.Value{
			{}, row.IntValue(int64(i) * 7919), row.StringValue("customer number " + strconv.Itoa(i)), row.StringValue("Frankfurt am Main"),
			row.StringValue("1974-05-23"), row.FloatValue(float64(i) / 8),
		}
	}
	return chunk
}

func number(chunk [][]row.Value, from int) {
	for i := range chunk {
		chunk[i][0] = row.IntValue(int64(from + i))
	}
}

// One op is one chunk with its commit.
func BenchmarkChunk(b *testing.B) {
	for _, size := range []int{1, 10, 25, 50, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("postgres/table/%d", size), func(b *testing.B) { benchWriter(b, testdb.Postgres(b), size) })
		b.Run(fmt.Sprintf("postgres/upsert/%d", size), func(b *testing.B) {
			benchMode(b, testdb.Postgres(b), size, config{Name: "load", Mode: modeUpsert, Key: []string{"id"}})
		})
		b.Run(fmt.Sprintf("postgres/copy/%d", size), func(b *testing.B) { benchCopy(b, testdb.Postgres(b), size) })
	}
	for _, size := range []int{1000} {
		b.Run(fmt.Sprintf("sqlite/table/%d", size), func(b *testing.B) { benchWriter(b, testdb.SQLite(b), size) })
		b.Run(fmt.Sprintf("sqlite/bare/%d", size), func(b *testing.B) { benchSQLite(b, size) })
	}
}

func benchWriter(b *testing.B, url string, size int) {
	benchMode(b, url, size, config{Name: "load"})
}

func benchMode(b *testing.B, url string, size int, c config) {
	db := open(b, url)
	exec(b, db, benchTable)
	s, chunk := benchSchema(b), benchChunk(size)
	w := writerTo(b, db, s, c)
	from := 0
	b.ResetTimer()
	for b.Loop() {
		number(chunk, from)
		from += size
		require.NoError(b, write(db, w, s, chunk...))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(from), "ns/row")
}

// benchCopy is the bare loop: begin, COPY of the same text, commit.
func benchCopy(b *testing.B, url string, size int) {
	db := open(b, url)
	exec(b, db, benchTable)
	chunk := benchChunk(size)
	from := 0
	var buf []byte
	b.ResetTimer()
	for b.Loop() {
		number(chunk, from)
		from += size
		buf = buf[:0]
		for _, r := range chunk {
			for i, v := range r {
				if i > 0 {
					buf = append(buf, '\t')
				}
				buf = v.AppendText(buf)
			}
			buf = append(buf, '\n')
		}
		require.NoError(b, tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
			return tx.ConnOf(ctx, db).Raw(ctx, func(c any) error {
				_, err := c.(*stdlib.Conn).Conn().PgConn().CopyFrom(ctx, bytes.NewReader(buf), "copy load from stdin")
				return err
			})
		}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(from), "ns/row")
}

// benchSQLite is the driver's own bare loop: 64 rows per prepared statement.
func benchSQLite(b *testing.B, size int) {
	db := open(b, testdb.SQLite(b))
	exec(b, db, benchTable)
	chunk := benchChunk(size)
	const rows = 64
	text := "insert into load values " + strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", rows), ",")
	from := 0
	args := make([]any, 0, rows*6)
	b.ResetTimer()
	for b.Loop() {
		number(chunk, from)
		from += size
		require.NoError(b, tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
			stmt, err := tx.ConnOf(ctx, db).PrepareContext(ctx, text)
			if err != nil {
				return err
			}
			exec := stmt.ExecContext
			for rest := chunk; len(rest) > 0; {
				n := min(rows, len(rest))
				if n < rows {
					exec = func(ctx context.Context, args ...any) (sql.Result, error) {
						return tx.ConnOf(ctx, db).ExecContext(ctx, "insert into load values "+strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", n), ","), args...)
					}
				}
				args = args[:0]
				for _, r := range rest[:n] {
					for _, v := range r {
						args = append(args, v.Any())
					}
				}
				if _, err := exec(ctx, args...); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return stmt.Close()
		}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(from), "ns/row")
}
