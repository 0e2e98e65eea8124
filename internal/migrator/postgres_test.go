package migrator_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var applied = migrator.Result{To: 1, Changed: true}

func migrate(t *testing.T, db tx.Database, text string) (migrator.Result, error) {
	t.Helper()
	return migrator.Run(t.Context(), db, migrator.Options{FS: files(map[string]string{"1_x.up.sql": text}), Dir: "m", Command: migrator.Up})
}

func ask(t *testing.T, db tx.Database, query string) (answer string) {
	t.Helper()
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), query).Scan(&answer))
	return answer
}

func TestWhatPostgreSQLTakesAsAScriptIsAMigration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, query, want string }{
		"line ends are carriage returns": {
			"-- first\rcreate table a(n int);\rinsert into a values (1);\r",
			"select count(*) from a", "1",
		},
		"savepoints": {
			"create table a(n int); savepoint q; insert into a values (1); rollback to q; insert into a values (2); release q",
			"select string_agg(n::text, ',') from a", "2",
		},
		"a rule of two statements": {
			"create table a(n int); create table b(n int); create table c(n int);\n" +
				"create rule r as on insert to a do also (insert into b values (new.n); insert into c values (new.n));\ninsert into a values (1)",
			"select count(*) from b, c", "1",
		},
		"functions with a body of SQL": {
			"create function f(n int default (2)) returns int language sql begin atomic select 1; select case n when 2 then 5 end; end;\n" +
				"create table a as select f() n",
			"select n from a", "5",
		},
		"one such function": {
			"create function f() returns int language sql begin atomic select 1; select 2; end;",
			"select f()", "2",
		},
		"an isolation level": {
			"set lock_timeout = '5s'; set transaction isolation level serializable; create table a as select current_setting('transaction_isolation')",
			"select * from a", "serializable",
		},
		"an isolation level, enclosed": {
			"begin; set local transaction isolation level repeatable read; create table a as select current_setting('transaction_isolation'); commit;",
			"select * from a", "repeatable read",
		},
		"a procedure and a block that commit": {
			"create table a(n int); create procedure p() language plpgsql as $$ begin insert into a values (1); commit; end $$;\n" +
				"call p(); do $$ begin insert into a values (2); commit; end $$; insert into a values (3)",
			"select sum(n) from a", "6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, testdb.Postgres(t))
			r, err := migrate(t, db, c.text)
			require.NoError(t, err)
			require.Equal(t, applied, r)
			require.Equal(t, c.want, ask(t, db, c.query))
		})
	}
}

func TestOnlyAStatementThatPostgreSQLRefusesInATransactionLeavesAMigrationHalfWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"an isolation level behind a query": {
			"create table a(n int);\ninsert into a values (1);\nset transaction isolation level serializable; select 1/0", "line 3: ",
		},
		"an isolation level, enclosed": {
			"begin; set transaction isolation level serializable; create table a(n int);\nselect 1/0; commit", "line 2: ",
		},
		"an isolation level in a block": {
			"create table a(n int);\ninsert into a values (1); do $$ begin set transaction isolation level serializable; end $$", "line 2: ",
		},
		"a block that may not do it alone either": {
			"create table a(n int);\ndo $$ begin execute 'vacuum a'; end $$", "line 2: ",
		},
		"a function that may not commit alone either": {
			"create table a(n int);\ncreate function f() returns void language plpgsql as $$ begin commit; end $$;\nselect f()", "line 3: ",
		},
		"behind a savepoint of the file's own": {
			"create table a(n int); savepoint q;\nvacuum a", "line 2: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, testdb.Postgres(t))
			r, err := migrate(t, db, c.text)
			require.ErrorContains(t, err, "on the way to version 1: m/1_x.up.sql"+strings.Replace(c.says, "line ", ":", 1))
			require.Equal(t, migrator.Result{}, r)
			require.Equal(t, "true", ask(t, db, "select to_regclass('a') is null"))
		})
	}
}

func TestAMigrationThatTakesAnotherRoleIsRecorded(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]string{
		"migrator_role": "set role migrator_role", "migrator_session": "set session authorization migrator_session",
		"migrator_local": "set local role migrator_local",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, testdb.Postgres(t))
			r, err := migrate(t, db, "create role "+name+";\ngrant all on schema public to "+name+";\n"+take+";\ncreate table a as select 1;")
			require.NoError(t, err)
			require.Equal(t, applied, r)
			require.Equal(t, name, ask(t, db, "select tableowner from pg_tables where tablename = 'a'"))
			execute(t, db, "drop owned by "+name+"; drop role "+name)
		})
	}
}

func TestAMigrationKeepsItsRoleBehindAStatementThatRefusesATransaction(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	r, err := migrate(t, db, "create role migrator_alone; grant all on schema public to migrator_alone; set role migrator_alone;\n"+
		"create table a(n int);\ncreate index concurrently i on a (n);\ncreate table b(n int);")
	require.NoError(t, err)
	require.Equal(t, applied, r)
	require.Equal(t, "migrator_alone", ask(t, db, "select tableowner from pg_tables where tablename = 'b'"))
	execute(t, db, "drop owned by migrator_alone; drop role migrator_alone")
}
