package query

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestTheCatalogueSaysWhatIsNeverNullOfAPlainTable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, `create table a (id integer primary key, "No" text not null, s text)`)
		exec(t, db, "create table k (k text primary key, v integer)")
		exec(t, db, "create view w as select id, s from a")
		for text, want := range map[string]string{
			"select * from a": "{id: int, No: string, s: string null}",
			`select x.*, s as t from a x where id > 0 -- union
				order by s`: "{id: int, No: string, s: string null, t: string null}",
			`select id, "No" from a as x`:                        "{id: int, No: string}",
			`select s as id, id as s, "No" n from a`:             "{id: string null, s: int, n: string}",
			"select * from w":                                    "{id: int null, s: string null}",
			"select nullif(id, 1) as id from a":                  "",
			"select * from a left join k on k.k = a.s":           "{id: int null, No: string null, s: string null, k: string null, v: int null}",
			"select k.id from a x left join a k on false":        "{id: int null}",
			"select id from a union all select null":             "",
			"select id from a group by id":                       "{id: int null}",
			"select distinct id from a":                          "{id: int null}",
			"select id from (select null as id from a) a":        "",
			"with a as (select null as id) select id from a":     "",
			"select id from a where s in ('union', 'x; select')": "{id: int}",
		} {
			c := config{SQL: statement(text), Snapshot: true}
			r, err := newReader(db, c, unknown(t))
			require.NoError(t, err)
			require.NoError(t, r.Open(t.Context(), nil), text)
			if want == "" { // a type of the database's choice
				require.True(t, r.Schema().Field(0).Nullable, text)
			} else {
				require.Equal(t, want, r.Schema().String(), text)
			}
			require.NoError(t, r.Close(t.Context()))
		}
		want := "{k: string, v: int null}"
		if db.Dialect() == tx.SQLite { // where a primary key may hold nulls
			want = "{k: string null, v: int null}"
		}
		require.Equal(t, want, opened(t, db, config{SQL: statement("select * from k"), Key: []string{"k"}}, unknown(t), nil).Schema().String())
	})
}

func TestTheRowidIsAKeyOnlyWhereItIsAColumn(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.SQLite(t))
	exec(t, db, "create table loose (n integer)")
	exec(t, db, "create table fixed (n integer primary key)")
	exec(t, db, "create table named (rowid integer not null unique, n integer)")
	for text, wrong := range map[string]bool{
		"select rowid, * from loose": true, "select _rowid_ as rowid, n from loose": true, "select rowid, n from fixed": false, "select rowid, n from named": false,
	} {
		r, err := newReader(db, config{SQL: statement(text), Key: []string{"rowid"}}, unknown(t))
		require.NoError(t, err)
		err = r.Open(t.Context(), nil)
		if wrong {
			require.ErrorContains(t, err, "VACUUM may change it", text)
		} else {
			require.NoError(t, err, text)
		}
	}
}
