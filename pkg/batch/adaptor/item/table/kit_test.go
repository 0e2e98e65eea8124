package table

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func open(t testing.TB, url string) tx.Database {
	t.Helper()
	p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	db, err := p.Database("")
	require.NoError(t, err)
	return db
}

// each runs f on an empty database of every kind.
func each(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	on(t, f, tx.SQLite, tx.Postgres)
}

// everywhere also runs f on MariaDB.
func everywhere(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	on(t, f, tx.SQLite, tx.Postgres, tx.MySQL)
}

func on(t *testing.T, f func(t *testing.T, db tx.Database), dialects ...tx.Dialect) {
	t.Helper()
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			url := testdb.SQLite
			switch dialect {
			case tx.Postgres:
				url = testdb.Postgres
			case tx.MySQL:
				url = testdb.MySQL
			case tx.SQLite:
			}
			f(t, open(t, url(t)))
		})
	}
}

func exec(t testing.TB, db tx.Database, statement string) {
	t.Helper()
	_, err := db.Conn().ExecContext(context.Background(), statement)
	require.NoError(t, err)
}

func schema(t testing.TB, fields ...row.Field) *row.Schema {
	t.Helper()
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return s
}

func ints(ns ...int64) []row.Value {
	values := make([]row.Value, len(ns))
	for i, n := range ns {
		values[i] = row.IntValue(n)
	}
	return values
}

// write writes one chunk in its own transaction. An odd number of records is
// encoded before it begins, if the writer can.
func write(db tx.Database, w *writer, s *row.Schema, records ...[]row.Value) error {
	encoding := w.NewEncoding()
	isEncoded := encoding != nil && len(records)%2 == 1 && encoding.EncodeRecords(s, records) == nil
	return tx.NewManager(db).Do(context.Background(), tx.Attr{Late: true}, func(ctx context.Context) error {
		if isEncoded {
			if done, err := w.WriteEncoded(ctx, encoding); done || err != nil {
				return err
			}
		}
		return w.WriteRecords(ctx, s, records)
	})
}

func writerTo(t testing.TB, db tx.Database, s *row.Schema, c config) *writer {
	t.Helper()
	w, err := newWriter(db, c, s)
	require.NoError(t, err)
	require.NoError(t, w.Open(context.Background(), nil))
	if c.Create && !s.IsOpen() { // the table exists before the first chunk, as with parts
		require.NoError(t, tx.NewManager(db).Do(context.Background(), tx.Attr{}, w.PrepareParts))
	}
	return w
}

func readAll(t require.TestingT, db tx.Database, s *row.Schema, statement string, key ...string) [][]row.Value {
	all, err := readSome(t, db, s, statement, key...)
	require.NoError(t, err)
	return all
}

type queryReader interface {
	item.Opener
	item.RecordReader
}

// readSome also returns the rows before the first unreadable one.
func readSome(t require.TestingT, db tx.Database, s *row.Schema, statement string, key ...string) (all [][]row.Value, err error) {
	ctx := context.Background()
	if s == nil {
		var err error
		s, err = row.Open()
		require.NoError(t, err)
	}
	r, err := testcomponent.Make[queryReader](query.Components(), registry.KindReader, testcomponent.Settings{
		"sql": registry.SQL{Parts: []string{statement}}, "key": key, "fetch": 7,
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}, Out: item.RowOf("", s)})
	require.NoError(t, err)
	require.NoError(t, r.Open(ctx, nil))
	for {
		record := make([]row.Value, r.Schema().Len())
		err := r.ReadRecord(ctx, record)
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, record)
	}
}

func at(text string) row.Value {
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return row.TimestampValue(parsed)
}

func dec(text string) row.Value {
	d, err := row.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return row.DecimalValue(d)
}

func everyKind(t testing.TB) *row.Schema {
	fields := []row.Field{{Name: "id", Kind: row.Int}}
	for _, name := range append(row.KindNames(), listNames()...) {
		kind, _ := row.KindByName(name)
		name = strings.ReplaceAll(name, " ", "_")
		fields = append(fields, row.Field{Name: name + "_a", Kind: kind}, row.Field{Name: name + "_b", Kind: kind, Nullable: true})
	}
	return schema(t, fields...)
}

func listNames() []string {
	var names []string
	for _, elem := range row.KindNames() {
		if _, ok := row.KindByName("list of " + elem); ok {
			names = append(names, "list of "+elem)
		}
	}
	return names
}

func js(text string) row.Value {
	j, err := row.ParseJSON(text)
	if err != nil {
		panic(err)
	}
	return row.JSONValue(j)
}

func id(text string) row.Value {
	u, err := row.ParseUUID(text)
	if err != nil {
		panic(err)
	}
	return row.UUIDValue(u)
}

// requireSame compares values: SQLite does not keep the scale of a decimal, nor jsonb the order
// of keys.
func requireSame(t require.TestingT, want, got [][]row.Value) {
	canonical := func(records [][]row.Value) [][]row.Value {
		out := make([][]row.Value, len(records))
		for i, record := range records {
			for _, v := range record {
				out[i] = append(out[i], v.Canonical())
			}
		}
		return out
	}
	require.Equal(t, canonical(want), canonical(got))
}
