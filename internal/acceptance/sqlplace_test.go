package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAStatementThatFailsNamesItsPositionInTheJobFile(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, step, lite, post string }{
		{"unknown column", `
  chunk:
    reader:
      query:
        sql: |
          select id,
            ä.nam, ${'x'} as x
          from a ä
        key: [id]
    writer: {csv: out.csv}`, "job.yaml:8:", "job.yaml:9:13: "},
		{"unknown column behind a variable", `
  chunk:
    reader: {query: {sql: "select id, ${'a'} as a, ${'b'} as b, nam from a", key: [id]}}
    writer: {csv: out.csv}`, "job.yaml:5:", "job.yaml:5:65: "},
		{"value", `
  chunk:
    reader: {query: {sql: "select id, abs(-9223372036854775808 + id - 1) n, 1 / (id - id) as x from a", key: [id]}}
    writer: {csv: out.csv}`, "job.yaml:5:27: ", "job.yaml:5:27: "},
		{"partitions", `
  partition: {by: {query: {sql: "select nam from a", item: {nam: string}}}}
  chunk:
    reader: {query: {sql: select id from a, key: [id]}}
    writer: {csv: "out-${part.index}.csv"}`, "job.yaml:4:", "job.yaml:4:41: "},
		{"check", `
  tasklet: {check: {none: {bad: select nam from a}}}`, "job.yaml:4:33: ", "job.yaml:4:40: "},
		{"compare", `
  tasklet: {compare: {left: {sql: select id from a}, right: {sql: select nam from a}, key: [id]}}`, "job.yaml:4:67: ", "job.yaml:4:74: "},
		{"script", `
  tasklet:
    sql: |
      insert into a values (2);
      insert into a values (2);
      insert into b values (3)`, "job.yaml:8:7: ", "job.yaml:8:19: "},
		{"query of a tasklet", `
  tasklet: {sql: {query: "select nam as n from a", out: {n: int}}}`, "job.yaml:4:", "job.yaml:4:34: "},
	}
	testdb.Each(t, func(t *testing.T, url string) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				s := newScene(t, anotherOf(t, url), map[string]string{"job.yaml": "job: meal\nflow:\n- step: s" + c.step + "\n"})
				db, _ := s.open()
				s.exec(db, "create table a (id bigint)", "insert into a values (1)")
				code, out := s.run("run", "job.yaml")
				require.Equal(t, 1, code, out)
				want := c.lite
				if strings.HasPrefix(url, "postgres") {
					want = c.post
				}
				require.Contains(t, out, want)
				require.Contains(t, out, ", in: ")
			})
		}
	})
}
