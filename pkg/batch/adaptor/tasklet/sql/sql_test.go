//test:plain

package sqltask

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func each(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	testdb.Each(t, onDatabase(f))
}

func onDatabase(f func(t *testing.T, db tx.Database)) func(t *testing.T, url string) {
	return func(t *testing.T, url string) {
		t.Parallel()
		p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: url}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		db, err := p.Database("")
		require.NoError(t, err)
		f(t, db)
	}
}

func statement(text string, args ...any) registry.SQL {
	return registry.SQL{Parts: strings.Split(text, "${}"), Args: args}
}

func results(t *testing.T, fields ...row.Field) item.Type {
	t.Helper()
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return item.RowOf("", s)
}

func run(t *testing.T, db tx.Database, c config) (*core.StepContribution, error) {
	t.Helper()
	task, err := newTasklet(db, c)
	require.NoError(t, err)
	contribution := &core.StepContribution{}
	err = tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error { return task.Execute(ctx, contribution) })
	return contribution, err
}

func count(t *testing.T, db tx.Database, table string) (n int) {
	t.Helper()
	require.NoError(t, db.Conn().QueryRowContext(context.Background(), "select count(*) from "+table).Scan(&n))
	return n
}

const script = `
	create table a (id integer primary key, s text); -- a comment; with a semicolon
	insert into a values (1, 'x;'), (2, 'it''s'), (3, null);
	create index a_s on a (s);
	with old as (select id from a where id > 1) update a set s = 'new' where id in (select id from old);
	select * from a;
	delete from a where id = 3;`

func TestSeveralStatementsCountTheRowsThatTheyChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		c, err := run(t, db, config{Statement: statement(script)})
		require.NoError(t, err)
		require.EqualValues(t, 3+2+1, c.Counters.Write)
		require.Equal(t, 2, count(t, db, "a"))
	})
}

func TestABodyWithSemicolonsIsOneStatement(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		body := `create trigger note after insert on a begin insert into b values (new.id); insert into b values (case when new.id then -new.id end); end;`
		if db.Dialect() == tx.Postgres {
			body = `create function note() returns trigger language plpgsql as $$ begin insert into b values (new.id); insert into b values (-new.id); return new; end $$;
				create trigger note after insert on a for each row execute function note();`
		}
		_, err := run(t, db, config{Statement: statement("create table a (id integer); create table b (id integer);" + body + "insert into a values (1), (2)")})
		require.NoError(t, err)
		require.Equal(t, 4, count(t, db, "b"))
	})
}

func TestAFailureUndoesTheStatementsBefore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		const bad = "create table u (id integer primary key); insert into u values (1); insert into u values (1)"
		_, err := run(t, db, config{Statement: statement(bad)})
		require.True(t, dberr.IsUniqueViolation(err), "%v", err)

		// Without an outer transaction, several statements have their own.
		task, err := newTasklet(db, config{Statement: statement(bad)})
		require.NoError(t, err)
		err = task.Execute(context.Background(), &core.StepContribution{})
		require.True(t, dberr.IsUniqueViolation(err), "%v", err)
		_, err = db.Conn().ExecContext(context.Background(), "create table u (id integer)")
		require.NoError(t, err, "the table is gone with the rest")
	})
}

func TestTheTransactionCannotBeEndedByAStatement(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		_, err := run(t, db, config{Statement: statement("create table kept (id integer)")})
		require.NoError(t, err)
		_, err = run(t, db, config{Statement: statement("insert into kept values (1); commit; insert into kept values (2)")})
		require.ErrorIs(t, err, tx.ErrNotOwner)
		require.Zero(t, count(t, db, "kept"))
	})
}

func TestVacuumRunsWithoutATransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		task, err := newTasklet(db, config{Statement: statement("vacuum;")})
		require.NoError(t, err)
		require.NoError(t, task.Execute(context.Background(), &core.StepContribution{}))
	})
}

func TestBindVariablesAreNotSpliced(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		_, err := run(t, db, config{Statement: statement("create table p (id integer, name text, at timestamp, d date)")})
		require.NoError(t, err)
		c, err := run(t, db, config{Statement: statement("insert into p values (${}, ${}, ${}, ${})",
			int64(7), "'); drop table p; --", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), row.NewDate(2026, 1, 2))})
		require.NoError(t, err)
		require.EqualValues(t, 1, c.Counters.Write)
		c, err = run(t, db, config{
			Query: statement("select name, at, d, id from p where id = ${} and at > ${}", int64(7), row.NewDate(2026, 1, 2)),
			Out:   results(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "at", Kind: row.Timestamp}, row.Field{Name: "d", Kind: row.DateKind}),
		})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"id": int64(7), "name": "'); drop table p; --", "at": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "d": row.NewDate(2026, 1, 2)}, c.Out)
		_, err = run(t, db, config{Statement: statement("delete from p where id = ${}; delete from p", int64(1))})
		require.ErrorContains(t, err, "2 statements cannot use variables")
	})
}

func TestAQuerysOneRowBecomesTheResults(t *testing.T) {
	t.Parallel()
	testdb.All(t, onDatabase(func(t *testing.T, db tx.Database) {
		_, err := db.Conn().ExecContext(t.Context(), "create table cost (amount double precision, price numeric(10,2))")
		require.NoError(t, err)
		_, err = run(t, db, config{Statement: statement("insert into cost values (1.5, 2.25), (2.5, 3)")})
		require.NoError(t, err)
		c, err := run(t, db, config{
			Query: statement("select count(*) n, sum(amount) total, sum(price) price, max(amount) > 2 as dear, min(null) as missing, count(*) as share, 5 as unused from cost"),
			Out: results(t, row.Field{Name: "n", Kind: row.Int}, row.Field{Name: "total", Kind: row.Float, Nullable: true}, row.Field{Name: "price", Kind: row.Float},
				row.Field{Name: "dear", Kind: row.Bool}, row.Field{Name: "missing", Kind: row.String, Nullable: true}, row.Field{Name: "share", Kind: row.Float}),
		})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"n": int64(2), "total": 4.0, "price": 5.25, "dear": true, "missing": nil, "share": 2.0}, c.Out)
		for text, want := range map[string]string{
			"select 1 as n where 1 = 0":            "returned no row",
			"select 1 as n union select 2":         "more than one row",
			"select 1 as m":                        "the query has no column n",
			"select 'x' as n":                      `"x" is not an int`,
			"select cast(null as integer) as n":    "not nullable",
			"select n from a_table_that_is_absent": "a_table_that_is_absent",
		} {
			_, err := run(t, db, config{Query: statement(text), Out: results(t, row.Field{Name: "n", Kind: row.Int})})
			require.ErrorContains(t, err, want, text)
		}
	}))
}

func TestValuesOfMySQLThatADriverChangesAreExactOrRefused(t *testing.T) { //nolint:paralleltest // onDatabase
	onDatabase(func(t *testing.T, db tx.Database) {
		_, err := db.Conn().ExecContext(t.Context(), "create table v (big bigint unsigned, bits bit(9), r float, b blob, d date, at datetime(6), j json)")
		require.NoError(t, err)
		insert := "insert into v values (18446744073709551615, b'100000001', 0.1, x'ff00', '2026-01-02', '2026-01-02 03:04:05.000006', '[1]')"
		_, err = run(t, db, config{Statement: statement(insert)})
		require.NoError(t, err)
		query := config{Query: statement("select * from v"), Out: results(t, row.Field{Name: "big", Kind: row.String}, row.Field{Name: "bits", Kind: row.Int},
			row.Field{Name: "r", Kind: row.Float}, row.Field{Name: "b", Kind: row.BytesKind}, row.Field{Name: "d", Kind: row.DateKind}, row.Field{Name: "at", Kind: row.Timestamp})}
		c, err := run(t, db, query)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"big": "18446744073709551615", "bits": int64(257), "r": 0.1, "b": []byte{0xff, 0}, "d": row.NewDate(2026, 1, 2),
			"at": time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}, c.Out)
		_, err = db.Conn().ExecContext(t.Context(), "set statement sql_mode = '' for update v set d = '0000-00-00'")
		require.NoError(t, err)
		_, err = run(t, db, query)
		require.ErrorContains(t, err, "column d: a zero date of MySQL")
	})(t, testdb.MySQL(t))
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	out := results(t, row.Field{Name: "n", Kind: row.Int})
	for _, c := range []struct {
		config config
		key    string
	}{
		{config{}, "statement"},
		{config{Statement: statement("x"), Query: statement("y")}, "query"},
		{config{Statement: statement("x"), Out: out}, "out"},
		{config{Query: statement("x")}, "out"},
		{config{Query: statement("x"), Out: item.TypeOf[int]("int")}, "out"},
	} {
		_, err := Components()[0].Types(&c.config, nil)
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at)
		require.Equal(t, c.key, at.Key)
	}
}

// Rule T8b.
func TestWhatAStatementChangesOfItsSessionInAnyWayEndsWithItsStep(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.Postgres(t))
	for _, text := range []string{
		"create schema x", "create table x.t(id int)", "create table t(id int)",
		"create function f() returns text language sql as $$ select set_config('search_path', 'x, public', false) $$",
		"create view v as select f()",
	} {
		e.Exec(text)
	}
	for i, text := range []string{
		"select * from v", "select set_config ('search_path', 'x, public', false)", `select "set_config"('search_path', 'x, public', false)`,
		"create table c as select set_config('search_path', 'x, public', false)",
		"comment on table t is $$bird's$$; set search_path = x, public; select 'b'",
	} {
		var elements []*model.StepElement
		for name, of := range map[string]string{"first": text, "second": fmt.Sprintf("insert into t values (%d)", i)} {
			task, err := newTasklet(e.Database, config{Statement: statement(of)})
			require.NoError(t, err)
			elements = append(elements, e.Tasklet(name, tx.Attr{}, task.Execute))
		}
		slices.SortFunc(elements, func(a, b *model.StepElement) int { return strings.Compare(a.ElementName(), b.ElementName()) })
		exec := e.Run(testengine.Job(fmt.Sprintf("job%d", i), elements...))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{int64(i) + 1}, e.Ints("select count(*) from public.t"), text)
	}
}

func TestAConstraintViolationNamesItsStatement(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		script := statement("create table odd (id int primary key check (id < 5));\ninsert into odd values (1);\n\ninsert into odd\nvalues (9);")
		script.At = func(_, offset int) string {
			return fmt.Sprintf("job.yaml:%d:1", 1+strings.Count(script.Parts[0][:offset], "\n"))
		}
		_, err := run(t, db, config{Statement: script})
		require.ErrorContains(t, err, "job.yaml:4:1: ")
		require.ErrorContains(t, err, ", in: insert into odd values (9)")
		require.True(t, dberr.IsConstraintViolation(err))
	})
}
