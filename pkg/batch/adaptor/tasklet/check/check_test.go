//test:plain

package check_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/check"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

const rows = `job: %s
flow:
- step: load
  tasklet:
    sql: |
      delete from person;
      insert into person values (1, 'Ada', 'GB', null), (2, 'Joan', 'DE', 1), (2, null, 'XX', 9), (3, 'O''Neil', null, 2)
`

const person = "create table person (id int, name text, country text, boss int)"

// Rules TL1 and TL2.
func TestRowsThatBreakARuleAreCountedShownAndStored(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.Exec(person)
		text := fmt.Sprintf(rows, "people") + `
- step: quality
  tasklet:
    check:
      sql: select * from person where id < ${div(2000, 20)}
      unique: [id, "id, name"]
      not_null: [id, name]
      accepted_values: {country: [GB, DE], id: ["1", "2", "3"]}
      relationships: {boss: person.id}
      none: {"no ada": "select id from person where name = ${'Ada'}"}
      store: bad_rows
`
		r := e.Job(e.File("people.yaml", text)).Failed("check: 5 of 8 checks failed: unique id: 2 rows, such as")
		failure := r.Step("quality").Error
		for _, part := range []string{"not_null name: 1 row, such as ", "accepted_values country: 1 row", "relationships boss: 1 row", "no ada: 1 row", "table bad_rows: step_execution = "} {
			require.Contains(t, failure, part)
		}
		require.Regexp(t, `"name": ?"Joan"`, failure)
		e.HasRows("select check_name, count(*), count(distinct step_execution), min(job), min(step) from bad_rows group by check_name order by check_name",
			"accepted_values country|1|1|people|quality", "no ada|1|1|people|quality", "not_null name|1|1|people|quality",
			"relationships boss|1|1|people|quality", "unique id|2|1|people|quality")
		e.HasRows("select count(*) from bad_rows where failed_row like '%\"country\":\"XX\"%' and check_name = 'accepted_values country'", "1")
		out := r.Step("quality").Out
		require.Equal(t, []any{int64(8), int64(5), int64(6), int64(4)}, []any{out["checks"], out["broken"], out["failed"], out["rows"]})

		// An attempt more adds its own rows.
		e.Job(e.File("people.yaml", text)).Failed("5 of 8")
		e.HasRows("select count(*), count(distinct execution), count(distinct step_execution) from bad_rows", "12|2|2")
	})
}

func TestWarningsCountAndADecisionReadsThem(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.Exec(person)
		r := e.Job(e.File("people.yaml", fmt.Sprintf(rows, "warned")+`
- step: quality
  tasklet: {check: {table: person, not_null: [name], severity: warn, show: 0}}
- step: good
  when: "steps.quality.out.failed == 1 and steps.quality.out.message == 'not_null name: 1 row'"
  tasklet: {check: {table: person, not_null: [id]}}
`)).Completed()
		require.Equal(t, "COMPLETED", r.Step("good").ExitCode)
	})
}

// Rule TL2.
func TestInATransactionACheckSeesWhatItHasWritten(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.Exec(person)
		text := func(name, more string) string {
			return fmt.Sprintf(rows, name) + `
- atomic: change
  steps:
  - {step: spoil, tasklet: {sql: "insert into person values (null, 'nobody', 'GB', null)"}}
  - {step: look, tasklet: {check: {table: person, not_null: [id]` + more + `}}, transaction: {propagation: REQUIRED}}
`
		}
		e.Job(e.File("a.yaml", text("a", ""))).Failed("not_null id: 1 row")
		e.HasRows("select count(*) from person where id is null", "0")
		if strings.HasPrefix(url, "mysql:") { // it has no store
			return
		}
		e.Job(e.File("b.yaml", text("b", ", store: bad"))).Failed("omit `transaction`, or set `severity: warn`")
	})
}

func TestANameThatIsNotThereIsFound(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.Exec(person)
		r := e.Job(e.File("people.yaml", fmt.Sprintf(rows, "names")+"- step: quality\n  tasklet: {check: {table: person, not_null: [nmae]}}\n")).Failed("not_null nmae")
		require.Regexp(t, "Unknown column .q.nmae|nmae.*(does not exist|did you mean name)", r.Step("quality").Error)
	})
}

func TestOnMySQLTextsAreComparedByTheirBytes(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t, batchtest.On(testdb.MySQL(t)))
	e.Exec(person)
	e.Exec("alter table person add photo blob, add flags bit(3)")
	e.Exec("insert into person values (1, 'Ada', 'gb', 7, x'ff00', 5), (1, 'Joan', 'GB ', 1, null, null), (2, null, 'GB', 1, null, null)")
	failure := e.Job(e.File("quality.yaml", `job: quality
flow:
- step: quality
  tasklet: {check: {table: person, unique: [id], not_null: [name], accepted_values: {country: [GB]}, relationships: {boss: person.id}}}
`)).Failed("4 of 4 checks failed").Step("quality").Error
	for _, part := range []string{"unique id: 2 rows", "not_null name: 1 row", "accepted_values country: 2 rows", "relationships boss: 1 row", `"photo": "FF00", "flags": 5}`} {
		require.Contains(t, failure, part)
	}
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	sql := registry.SQL{Parts: []string{"select 1"}}
	for key, c := range map[string]check.Config{
		"table":                  {Table: "a"},
		"sql":                    {Table: "a", SQL: sql, NotNull: []string{"b"}},
		"none":                   {Table: "a", None: map[string]registry.SQL{"x": sql}},
		"unique":                 {Table: "a", Unique: []string{"b,,c"}},
		"accepted_values.status": {Table: "a", AcceptedValues: map[string][]string{"status": nil}},
		"relationships.boss":     {Table: "a", Relationships: map[string]string{"boss": "person"}},
		"show":                   {Table: "a", NotNull: []string{"b"}, Show: 99},
	} {
		var at *registry.ConfigError
		require.ErrorAs(t, c.Validate(), &at)
		require.Equal(t, key, at.Key)
	}
}
