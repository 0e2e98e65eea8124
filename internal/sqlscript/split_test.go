//test:plain

package sqlscript_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestATextIsCutAtTheSemicolonsBetweenStatementsOnly(t *testing.T) {
	t.Parallel()
	both := []tx.Dialect{tx.SQLite, tx.Postgres}
	for _, c := range []struct {
		dialects []tx.Dialect
		text     string
		want     []string // verbs
	}{
		{both, "", nil},
		{both, " ;; -- nothing; here\n /* or; here */ ;", nil},
		{both, "select 1", []string{"SELECT"}},
		{both, "insert into a values (';', 'it''s;'); update \"a;b\" set x = 1;", []string{"INSERT", "UPDATE"}},
		{both, "delete from a -- ; no\n where x = '-- ;'; /* ; */ select 1 /* ; */", []string{"DELETE", "SELECT"}},
		{both, "with x as (select ';' from b), y as (delete from c returning *) insert into a select * from x", []string{"INSERT"}},
		{both, "with x as (insert into a select 1 returning *) select * from x; select 2", []string{"SELECT", "SELECT"}},
		{both, "(select 1) union (select 2); create table t (end_ date, \"begin\" date); select 1", []string{"SELECT", "CREATE", "SELECT"}},
		{both, "select case when a then 1 end; select 2", []string{"SELECT", "SELECT"}},
		{
			[]tx.Dialect{tx.SQLite},
			"create temp trigger g after insert on a begin update b set x = case when 1 then 2 end; delete from c; end; select `a;b`, [c;d] from e; create table f (begin date);select 1",
			[]string{"CREATE", "SELECT", "CREATE", "SELECT"},
		},
		{
			[]tx.Dialect{tx.Postgres},
			`create function f() returns int language plpgsql as $$ begin return 1; end; $$; do $x_1$ begin perform ';$$'; end $x_1$; select E'\';', $1, 'a\'; select u&';' /* a /* ; */ ; */`,
			[]string{"CREATE", "DO", "SELECT", "SELECT"},
		},
		{
			[]tx.Dialect{tx.Postgres},
			"create or replace procedure p() begin atomic insert into a values (case when true then 1 end); delete from b; end; select 1",
			[]string{"CREATE", "SELECT"},
		},
		{
			[]tx.Dialect{tx.Postgres},
			"create function f() returns int language sql begin /* ; */ atomic select 1; select 2; end; select 3",
			[]string{"CREATE", "SELECT"},
		},
		{
			[]tx.Dialect{tx.Postgres},
			"create rule r as on insert to a do also (insert into b values (new.x); insert into c values (';')); select 1",
			[]string{"CREATE", "SELECT"},
		},
		{[]tx.Dialect{tx.Postgres}, "-- first;\rselect 1;\r-- second;\r\ndelete from a", []string{"SELECT", "DELETE"}},
		{[]tx.Dialect{tx.SQLite}, "-- first;\rselect 1;\ndelete from a", []string{"DELETE"}},
	} {
		for _, d := range c.dialects {
			var verbs []string
			for _, s := range sqlscript.Split(c.text, d) {
				verbs = append(verbs, s.Verb)
				require.NotContains(t, s.Text[len(s.Text)-1:], ";")
			}
			require.Equal(t, c.want, verbs, "%s: %s", d, c.text)
		}
	}
}

func TestStatementsThatWouldEndTheTransactionOrTakeItsNameAreFound(t *testing.T) {
	t.Parallel()
	for text, control := range map[string]bool{
		"begin": true, "BEGIN immediate": true, "commit": true, "end": true, "abort": true, "rollback": true, "start transaction": true,
		"prepare transaction 'x'": true, "rollback to savepoint a": false, "savepoint a": false, "release a": false, "prepare p as select 1": false,
		"insert into a values ('commit')": false, "/* x */ commit and chain": true, "reset all": true, "reset search_path": false,
	} {
		for _, d := range []tx.Dialect{tx.SQLite, tx.Postgres} {
			list := sqlscript.Split("select 1; "+text, d)
			require.Len(t, list, 2)
			require.Equal(t, control, list[1].Control || list[1].Reset, text)
		}
	}
}

func TestAStatementKnowsItsLine(t *testing.T) {
	t.Parallel()
	for _, d := range []tx.Dialect{tx.SQLite, tx.Postgres} {
		text := "\n-- first\nselect\n1;;\n\n/* a\nb */ select 2; select 3"
		var lines []int
		for _, s := range sqlscript.Split(text, d) {
			lines = append(lines, s.Line)
			require.True(t, strings.HasPrefix(text[s.Offset:], s.Text))
		}
		require.Equal(t, []int{3, 7, 7}, lines)
	}
}

func FuzzSplitKeepsEveryStatement(f *testing.F) {
	for _, seed := range []string{"select 1;select 2", "a$b$;$b$;", "'", "E'\\", "create trigger begin;end;", "/*/*", "((", "with", "$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []tx.Dialect{tx.SQLite, tx.Postgres} {
			rest := text
			for _, s := range sqlscript.Split(text, d) {
				i := strings.Index(rest, s.Text)
				require.GreaterOrEqual(t, i, 0)
				rest = rest[i+len(s.Text):]
				require.True(t, strings.HasPrefix(text[s.Offset:], s.Text))
			}
		}
	})
}
