package query

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func readMySQL(t *testing.T, db tx.Database, c config, s *row.Schema) ([]string, error) {
	t.Helper()
	if s == nil {
		s = unknown(t)
	}
	r, err := newReader(db, c, s)
	require.NoError(t, err)
	if err := r.Open(t.Context(), nil); err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, r.Close(t.Context())) }()
	return rest(r)
}

// Rules MY6, MY7.
func TestEveryTypeOfMySQLIsReadAsItIs(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	exec(t, db, `create table bird (id int primary key, big bigint unsigned, small tinyint unsigned, flag tinyint(1), exact decimal(30, 10), f float, d double,
		b bit(10), e enum('Ab', 'c'), s set('x', 'y'), y year, j json, at datetime(6), day date, clock time(3), ts timestamp(6) null, raw varbinary(5), c char(3))`)
	exec(t, db, `insert into bird values (1, 18446744073709551615, 255, 1, 12345678901234567890.0123456789, 16777217, 0.1, 1000, 'Ab', 'x,y', 2026,
		'{"b": 1, "a": 2}', '2026-01-02 03:04:05.000006', '2026-01-02', '-101:02:03.004', '2026-01-02 03:04:05.000006', x'00ff', 'a')`)
	all, err := readMySQL(t, db, config{SQL: statement("select * from bird"), Key: []string{"id"}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"1|18446744073709551615|255|1|12345678901234567890.0123456789|16777216|0.1|1000|Ab|x,y|2026|" +
		`{"b": 1, "a": 2}|2026-01-02T03:04:05.000006Z|2026-01-02|-101:02:03.004|2026-01-02T03:04:05.000006Z|AP8=|a`}, all)
	s := schema(t, row.Field{Name: "big", Kind: row.Int})
	_, err = readMySQL(t, db, config{SQL: statement("select big, id from bird"), Key: []string{"big"}}, s)
	require.ErrorContains(t, err, "field big")
	require.True(t, exception.IsSkippable(err))
	_, err = readMySQL(t, db, config{SQL: statement("select id, point(1, 2) place from bird"), Key: []string{"id"}}, nil)
	require.ErrorContains(t, err, "column place is of type geometry")
	for _, key := range []string{"e", "f"} {
		_, err = readMySQL(t, db, config{SQL: statement("select * from bird"), Key: []string{key}}, nil)
		require.ErrorContains(t, err, "column "+key+" of type")
	}
}

// Rule MY6.
func TestAZeroDateIsNeverYearOne(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	exec(t, db, "create table bird (id int primary key, day date, at datetime)")
	exec(t, db, "insert into bird values (1, null, '2026-01-02 03:04:05')")
	for n, cells := range []string{"'0000-00-00', null", "'2026-00-10', null", "null, '0000-00-00 00:00:00'", "'2026-01-00', null"} {
		exec(t, db, fmt.Sprintf("set statement sql_mode = '' for insert into bird values (%d, %s)", n+2, cells))
	}
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "day", Kind: row.DateKind, Nullable: true}, row.Field{Name: "at", Kind: row.Timestamp, Nullable: true})
	r, err := newReader(db, config{SQL: statement("select * from bird"), Key: []string{"id"}}, s)
	require.NoError(t, err)
	require.NoError(t, r.Open(t.Context(), nil))
	record, bad := make([]row.Value, 3), 0
	for {
		err := r.ReadRecord(t.Context(), record)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			require.True(t, exception.IsSkippable(err), "%v", err)
			require.ErrorContains(t, err, "zero date")
			bad++
		}
	}
	require.Equal(t, 4, bad)
	all, err := readMySQL(t, db, config{SQL: statement("select * from bird"), Key: []string{"id"}, ZeroDates: zeroNull}, s)
	require.NoError(t, err)
	require.Equal(t, "1|null|2026-01-02T03:04:05Z 2|null|null 3|null|null 4|null|null 5|null|null", strings.Join(all, " "))
}

// Rule MY7: texts would be compared with decimals as floats.
func TestEveryTypeOfKeyOfMySQLIsReadPageByPage(t *testing.T) {
	t.Parallel()
	for kind, values := range map[string]string{
		"bigint unsigned":        "9223372036854775806 9223372036854775807 9223372036854775808 9223372036854775809 18446744073709551615",
		"decimal(30, 2)":         "1.00 12345678901234567890.01 12345678901234567890.02 12345678901234567890.03 12345678901234567890.04",
		"datetime(6)":            "'2026-01-02,03:04:05.000001' '2026-01-02,03:04:05.000002' '2026-01-02,03:04:05.000003' '2026-01-02,03:04:06'",
		"date":                   "'1000-01-01' '2026-01-02' '9999-12-31'",
		"varchar(20)":            "'a' 'B' 'c' 'd.e' 'ö'",
		"varbinary(20)":          "x'00' x'01' x'0100' x'ff'",
		"bit(8)":                 "1 2 3 255",
		"year":                   "1999 2000 2026",
		"time(3)":                "'-10:00:00' '01:02:03.004' '01:02:03.005' '100:00:00'",
		"double":                 "-1e300 0.1 0.2 0.30000000000000004 1e300",
		"double not null, n int": "0.1",
	} {
		db := open(t, testdb.MySQL(t))
		exec(t, db, "create table bird (k "+kind+")")
		list := strings.Fields(values)
		for _, v := range list {
			exec(t, db, "insert into bird (k) values ("+strings.ReplaceAll(v, ",", " ")+")")
		}
		for _, order := range []string{"k", "k desc"} {
			all, err := readMySQL(t, db, config{SQL: statement("select k, 1 as one from bird"), Key: []string{order, "one"}, Fetch: 1}, nil)
			require.NoError(t, err, kind)
			require.Len(t, all, len(list), "%s: %v", kind, all)
		}
	}
}
