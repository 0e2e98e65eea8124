package batchtest_test

import (
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// The table has old rows, a view, and a value that does not fit.
const refillJob = `
job: refill
parameters:
  input: {type: path}
flow:
- step: exchange
  chunk:
    size: 4
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    writer: {table: {name: people, mode: replace}}
    skip: {limit: 2, errors: [invalid_item]}
- step: fill
  chunk:
    size: 4
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    processor:
    - filter: item.id % 5 != 3
    writer: {table: {name: filled, mode: truncate}}
    skip: {limit: 2, errors: [invalid_item]}
- step: clear
  chunk:
    reader: {query: {sql: "select id, name from people where id < 0", key: [id]}}
    writer: {table: {name: cleared, mode: replace}}
- step: sync
  chunk:
    size: 4
    reader: {query: {sql: "select id, name from people", key: [id], item: {id: int, name: string}}}
    writer: {table: {name: synced, mode: upsert, key: [id], delete_missing: hard}}
`

// Rules TW1 to TW3, and TW7.
func TestTablesThatAreFilledAnewSurviveAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Again = 1
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", refillJob)
			e.File("in.csv", "id,name,amount\n1,a,1\n2,b,2\n3,name 3,3\n4,d,4\n5,e,5\n6,f,6\n3,third again,1.5\n7,seven,7\n")
			for _, table := range []string{"people", "filled", "cleared", "synced"} {
				e.Exec("create table " + table + " (id bigint, name text, amount bigint)")
				e.Exec("insert into " + table + " values (1, 'old', 1), (99, 'old', 99)")
			}
			e.Exec("create unique index single on people (id)")
			e.Exec("create unique index one_id on synced (id)")
			e.Exec("create view names as select name from people")
		}
		c.Check = func(_ *testing.T, e *batchtest.Env) {
			e.HasRows("select id, name from people where id in (3, 7, 99) order by id", "3|name 3", "7|seven")
			e.HasRows("select count(*), count(distinct id) from filled", "6|6")
			e.HasRows("select count(*), max(id) from synced", "7|7")
			e.HasRows("select (select count(*) from names), (select count(*) from cleared)", "7|0")
		}
	})
}
