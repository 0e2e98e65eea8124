package batchtest_test

import (
	"fmt"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// deltaJob copies the changes since the previous instance.
const deltaJob = `
job: delta
parameters: {run: {type: int}}
flow:
- step: load
  chunk:
    size: 2
    reader: {query: {sql: "select id, version from src", key: [id], since: version, item: {id: int, version: int}}}
    processor:
    - validate: item.id != 4
    writer: {table: copied}
    skip: 3
`

// Rules IL1 and IL2.
func TestAnIncrementalLoadSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Again = onlyInSoak(1)
		c.Job = c.Path("delta.yaml")
		c.Params = []string{"run=2"}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("delta.yaml", deltaJob)
			e.Exec("create table src (id bigint primary key, version bigint)")
			e.Exec("create table copied (id bigint, version bigint)")
			e.Exec("insert into src values (1, 1), (2, 2), (3, 3)")
			e.Job(e.Path("delta.yaml"), "run=1").Completed()
			e.Exec("update src set version = 10 where id = 2")
			for id := 4; id <= 9; id++ {
				e.Exec(fmt.Sprintf("insert into src values (%d, %d)", id, 20-id))
			}
		}
		c.Check = func(_ *testing.T, e *batchtest.Env) {
			e.HasRows("select count(*), count(distinct id * 100 + version), sum(version) from copied", "9|9|81")
			e.Exec("update src set version = 30 where id = 1")
			e.Job(e.Path("delta.yaml"), "run=3").Completed()
			e.HasRows("select id from copied where version > 16", "1")
			e.HasRows("select count(*), count(distinct id * 100 + version) from copied", "10|10")
		}
	})
}

const explodeJob = `
job: explode
flow:
- step: lines
  chunk:
    size: 3
    reader:
      json:
        path: orders.json
        items: orders
        explode: lines
        item: {order_no: {type: int, from: id}, sku: {type: string, from: lines.sku}, n: {type: int, from: lines.n}}
    processor: {map: {element: "string(meta.index) + '.' + string(meta.row)"}}
    writer:
    - table: {name: order_line, create: true}
    - jsonl: lines.jsonl
    skip: 10
- step: tags
  chunk:
    size: 2
    reader: {jsonl: {path: tags.jsonl, explode: tags, item: {id: int, tag: {type: string, from: tags}}}}
    writer: {table: {name: tag, create: true}}
    skip: 10
`

// Rule D9b.
func TestRowsOfElementsSurviveAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Again = onlyInSoak(1)
		c.Job = c.Path("explode.yaml")
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("explode.yaml", explodeJob)
			orders := ""
			for id, lines := range []string{
				`[{"sku":"a","n":1},{"sku":"b","n":"two"},{"sku":"c","n":3},{"sku":"d","n":4}]`, `[]`, `[{"sku":"e","n":5}]`, `null`,
				`"none"`, `[{"sku":"f","n":6},{"sku":"g","n":7},{"sku":"h","n":null},{"sku":"i","n":9},{"sku":"j","n":10}]`,
			} {
				orders += fmt.Sprintf(`%.*s{"id":%d,"lines":%s}`, min(id, 1), ",", id, lines)
			}
			e.File("orders.json", `{"v":1,"orders":[`+orders+`],"w":2}`)
			e.File("tags.jsonl", "{\"id\":1,\"tags\":[\"x\",\"y\",null,\"z\"]}\n{\"id\":2,\n{\"tags\":[\"u\"],\"id\":3}\n{\"id\":4}\n")
		}
		c.Check = func(_ *testing.T, e *batchtest.Env) {
			e.HasRows("select count(*), count(distinct element), sum(n) from order_line", "8|8|45")
			e.HasRows("select element from order_line where sku in ('d', 'j') order by sku", "1.4", "6.5")
			e.HasRows("select count(*), count(distinct tag) from tag", "4|4")
		}
	})
}
