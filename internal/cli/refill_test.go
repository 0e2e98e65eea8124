package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

// Rules TW3 and TW4.
func TestARedriveAddsToATableThatWasReplacedAndNotBeforeItIs(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("size: 4", "size: 1", "skip: 10", "skip: 1", "{table: numbers}", "{table: {name: numbers, mode: replace}}").Replace(skipJob)
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": text, "numbers.csv": "id,The Code\n1,10\n2,x\n3,y\n4,40\n"})
	s.must("sql", "--write", "create table numbers (id int primary key, code text)")
	s.must("sql", "--write", "insert into numbers values (7, 'old')")
	s.must("migrate")
	require.Equal(t, cli.ExitFailed, s.run("run", "load.yaml").code)
	s.write("x.jsonl", `{"id":1,"item":{"id":2,"The Code":"20"}}`)
	r := s.run("skips", "redrive", "1", "--from", s.path("x.jsonl"))
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "table numbers: step load of execution 1 is FAILED; it publishes its output when it completes, which would replace redriven rows: restart execution 1 first, then redrive its skipped items")
	require.Equal(t, []string{"7=old"}, s.rows())

	s.write("load.yaml", strings.Replace(text, "mode: replace", "mode: insert", 1))
	r = s.run("restart", "1")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, `step load has committed work with writer table: mode replace, and it is insert now`)
	s.write("load.yaml", strings.Replace(text, "skip: 1", "skip: 10", 1))
	s.must("restart", "1")
	require.Equal(t, []string{"1=10", "4=40"}, s.rows())
	s.must("skips", "redrive", "1", "--from", s.path("x.jsonl"))
	require.Equal(t, []string{"1=10", "2=20", "4=40"}, s.rows())
	require.JSONEq(t, `[{"n":0}]`, s.must("sql", "select count(*) n from sqlite_schema where name like 'surfin%numbers'", "--format", "json").out)
}
