package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// If the database takes the keys of two rows for equal, the second row would be lost at a page's end, however
// different the keys look.
func TestKeysThatLookDifferentAndAreEqualToTheDatabaseAreRefused(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create collation accents (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
	exec(t, db, "create extension citext")
	for name, c := range map[string]struct{ column, values string }{
		"accents":       {"text collate accents", "('resume'), ('Résumé'), ('z')"},
		"varchar":       {"varchar(20) collate accents", "('a'), ('á'), ('z')"},
		"interval":      {"interval", "('1 day'), ('24:00'), ('40 days')"},
		"jsonb":         {"jsonb", `('[1.0]'), ('[1]'), ('[2]')`},
		"numeric":       {"numeric", "(1.0), (1.00), (2)"},
		"numeric array": {"numeric[]", "('{1.0}'), ('{1}'), ('{2}')"},
		"citext":        {"citext", "('ß'), ('a'), ('A')"},
		"float":         {"float8", "('-0'), (0), (1)"},
		"float array":   {"float8[]", "('{-0}'), ('{0}'), ('{1}')"},
		"char":          {"bpchar", "('a'), ('a  '), ('b')"},
		"inet":          {"inet", "('::ffff:0:1'), ('::255.255.0.1'), ('::2'), ('::2/128')"},
		"macaddr":       {"macaddr", "('08:00:2b:01:02:03'), ('08002b010203')"},
		"range":         {"numrange", "('[1,2)'), ('[1.0,2.0)'), ('[3,4)')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := `"k ` + name + `"`
			exec(t, db, "create table "+table+" (n int, k "+c.column+", v int default 1)")
			exec(t, db, "insert into "+table+" (k) values "+c.values)
			requireRefused(t, db, table)
		})
	}
	lite := open(t, testdb.SQLite(t))
	for i, c := range []struct{ column, values string }{
		{"text collate nocase", "('a'), ('B'), ('b')"},
		{"text collate rtrim", "('a'), ('a  '), ('b')"},
		{"integer collate nocase", "('x'), ('X'), (7)"},
		{"", "(10), (10.0), ('10')"},
	} {
		table := fmt.Sprintf("k%d", i)
		exec(t, lite, "create table "+table+" (n int, k "+c.column+", v int default 1)")
		exec(t, lite, "insert into "+table+" (k) values "+c.values)
		requireRefused(t, lite, table)
	}
}

func requireRefused(t *testing.T, db tx.Database, table string) {
	t.Helper()
	for _, key := range [][]string{{"k"}, {"v", "k"}, {"k", "v"}, {"k desc"}, {"v desc", "k"}, {"v", "k desc"}} {
		for fetch := 1; fetch < 5; fetch++ {
			_, err := rest(opened(t, db, config{SQL: statement("select * from " + table), Key: key, Fetch: fetch}, unknown(t), nil))
			require.ErrorContains(t, err, "is not unique: more than one row has", "%s by %s, fetch %d", table, key, fetch)
		}
		exec(t, db, "update "+table+" set n = 0")
	}
}

func TestADuplicateThatLooksDifferentIsNamedWithItsEqual(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, map[tx.Dialect]string{tx.SQLite: "create table w (k text collate nocase)", tx.Postgres: "create table w (k interval)"}[db.Dialect()])
		low, high := "Abc", "aBC"
		if db.Dialect() == tx.Postgres {
			low, high = "1 day", "24:00:00"
		}
		exec(t, db, fmt.Sprintf("insert into w values ('%s'), ('%s')", low, high))
		_, err := rest(opened(t, db, config{SQL: statement("select k from w"), Key: []string{"k"}}, unknown(t), nil))
		require.ErrorContains(t, err, "equals k ")
		require.ErrorContains(t, err, low)
		require.ErrorContains(t, err, high)
	})
}

func TestEveryRowIsReadOnceInEveryDirectionAndUnderEveryCollation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table plain (s text not null, n integer not null, v integer)")
		if db.Dialect() == tx.Postgres {
			exec(t, db, "create collation loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
			exec(t, db, "create table loose (s text collate loose not null, n integer not null, v integer)")
		} else {
			exec(t, db, "create table loose (s text collate nocase not null, n integer not null, v integer)")
		}
		texts := []string{"a", "A", "á", "ab", "", "z", "-a"}
		rapid.Check(t, func(t *rapid.T) {
			table := rapid.SampledFrom([]string{"plain", "loose"}).Draw(t, "table")
			exec(t, db, "delete from "+table)
			type entry struct {
				s string
				n int64
			}
			entries := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) entry {
				return entry{rapid.SampledFrom(texts).Draw(t, "s"), rapid.Int64Range(-2, 2).Draw(t, "n")}
			}), 0, 20, rapid.ID[entry]).Draw(t, "entries")
			for i, e := range entries {
				exec(t, db, fmt.Sprintf("insert into %s values ('%s', %d, %d)", table, e.s, e.n, i))
			}
			direction := rapid.SampledFrom([]string{"", " desc", " asc"})
			key := []string{"s" + direction.Draw(t, "s"), "n" + direction.Draw(t, "n")}
			if rapid.Bool().Draw(t, "turned") {
				slices.Reverse(key)
			}
			c := config{SQL: statement("select s, n, v from " + table), Key: key, Fetch: rapid.IntRange(1, 7).Draw(t, "fetch")}
			all, err := rest(opened(t, db, c, unknown(t), nil))
			if err != nil {
				require.Equal(t, "loose", table, err)
				require.ErrorContains(t, err, "is not unique")
				return
			}
			require.Len(t, all, len(entries))
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), len(entries))
			stop := rapid.IntRange(0, len(all)).Draw(t, "stop")
			r := opened(t, db, c, unknown(t), nil)
			for range stop {
				require.NoError(t, r.ReadRecord(context.Background(), make([]row.Value, 3)))
			}
			at, err := r.Position()
			require.NoError(t, err)
			tail, err := rest(opened(t, db, c, unknown(t), at))
			require.NoError(t, err)
			require.Equal(t, strings.Join(all[stop:], "\n"), strings.Join(tail, "\n"))
		})
	})
}

func TestAKeyIsReadDownwards(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table visit (day date not null, id integer not null)")
		exec(t, db, "insert into visit values ('2026-01-01', 1), ('2026-01-01', 2), ('2026-01-02', 3), ('2026-01-03', 4)")
		c := config{SQL: statement("select day, id from visit"), Key: []string{"day desc", "id"}, Fetch: 1}
		all, err := rest(opened(t, db, c, unknown(t), nil))
		require.NoError(t, err)
		require.Equal(t, []string{"2026-01-03|4", "2026-01-02|3", "2026-01-01|1", "2026-01-01|2"}, all)

		r := opened(t, db, c, unknown(t), nil)
		require.NoError(t, r.ReadRecord(t.Context(), make([]row.Value, 2)))
		at, err := r.Position()
		require.NoError(t, err)
		c.Key = []string{"day", "id"}
		other, err := newReader(db, c, unknown(t))
		require.NoError(t, err)
		require.ErrorContains(t, other.Open(t.Context(), at), "the last commit was at key day desc, not day")
	})
}

// The comparison with the last key would use text's operators.
func TestATypeWhoseOperatorsAreOutOfSightIsNoKey(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create schema ext")
	exec(t, db, "create extension citext schema ext")
	exec(t, db, "create table c (k ext.citext)")
	r, err := newReader(db, config{SQL: statement("select k from c"), Key: []string{"k"}}, unknown(t))
	require.NoError(t, err)
	require.ErrorContains(t, r.Open(t.Context(), nil), "key k: the operators of its type are in the schema ext")
}
