package acceptance

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

type meal struct {
	name string
	flow string
	lay  func(s *scene, n int)
	// database means that the rows are in one.
	database bool
}

const (
	mealRow   = "{id: int, name: string, amount: {type: decimal, scale: 2}}"
	mealCSV   = "{csv: {path: in.csv, item: " + mealRow + "}}"
	mealFixed = `columns: {id: {at: 2-10, pad: "0"}, name: 11-30, amount: {at: 31-41, pad: "0", decimals: 2}}, record: D, header: H, trailer: {begins: T, count: 2-10, sums: {amount: 11-30}}`
)

func mealOf(reader, writer string, more ...string) string {
	return "- step: eat\n  chunk:\n    reader: " + reader + "\n    writer: " + writer + "\n" + strings.Join(more, "")
}

func meals() []meal {
	table := "{table: {name: meal, create: true}}"
	created := "- step: make\n  tasklet: {sql: \"create table meal (id bigint primary key, name text, amount numeric)\"}\n"
	filled := created + mealOf(mealCSV, "{table: meal}")
	return []meal{
		{name: "csv to csv", flow: mealOf(mealCSV, "{csv: out.csv}"), lay: layCSV},
		{name: "csv to json", flow: mealOf(mealCSV, "{json: out.json}"), lay: layCSV},
		{name: "csv to jsonl", flow: mealOf(mealCSV, "{jsonl: out.jsonl.gz}"), lay: layCSV},
		{name: "csv to fixed", flow: mealOf(mealCSV, "{fixed: {path: out.txt, "+mealFixed+"}}"), lay: layCSV},
		{name: "csv to lines", flow: mealOf(mealCSV, "{lines: out.txt}", "    processor: {map: {only: true, line: item.name}}\n"), lay: layCSV},
		{name: "csv with bad lines", flow: mealOf(mealCSV, "{csv: out.csv}", "    skip: 1000000\n"), lay: func(s *scene, n int) {
			s.lay("in.csv", "id,name,amount\n", "", n, func(i int) string {
				if i%50 == 0 {
					return "x,bad,1\n"
				}
				return mealLine(i)
			})
		}},
		{name: "json", flow: mealOf("{json: {path: in.json, items: data.rows, item: "+mealRow+"}}", "{csv: out.csv}"), lay: func(s *scene, n int) {
			s.lay("in.json", `{"v":1,"data":{"rows":[{"id":0,"name":"x","amount":1}`, `]}}`, n, func(i int) string { return "," + mealObject(i) })
		}},
		{name: "json with explode, in one line", flow: mealOf("{json: {path: in.json, explode: lines, item: {order: int, id: {type: int, from: lines.id}, name: {type: string, from: lines.name}}}}", "{csv: out.csv}"), lay: func(s *scene, n int) {
			s.lay("in.json", `[{"order":0,"lines":[]}`, `]`, n/20, func(i int) string {
				lines := make([]string, 20)
				for l := range lines {
					lines[l] = mealObject(i*20 + l)
				}
				return `,{"order":` + strconv.Itoa(i) + `,"lines":[` + strings.Join(lines, ",") + `]}`
			})
		}},
		{name: "jsonl", flow: mealOf("{jsonl: {path: in.jsonl, item: "+mealRow+"}}", "{csv: out.csv}"), lay: func(s *scene, n int) {
			s.lay("in.jsonl", "", "", n, func(i int) string { return mealObject(i) + "\n" })
		}},
		{name: "fixed", flow: mealOf("{fixed: {path: in.txt, item: "+mealRow+", "+mealFixed+"}}", "{csv: out.csv}"), lay: func(s *scene, n int) {
			s.lay("in.txt", "H\n", fmt.Sprintf("T%09d%020d\n", n, n*(n-1)/2), n, func(i int) string { return fmt.Sprintf("D%09d%-20s%011d\n", i, "name "+strconv.Itoa(i), i) })
		}},
		{name: "lines", flow: mealOf("{lines: in.csv}", "{lines: out.txt.gz}"), lay: layCSV},
		{name: "files", flow: mealOf("{files: {glob: in/*.csv, reader: {csv: {item: "+mealRow+"}}}}", "{csv: out.csv}"), lay: func(s *scene, n int) {
			const each = 5000
			for f := range n / each {
				s.lay(fmt.Sprintf("in/%d.csv", f), "id,name,amount\n", "", each, mealLine)
			}
		}},
		{name: "group", flow: mealOf("{group: {reader: "+mealCSV+", processor: [{map: {bag: \"div(item.id, 3)\"}}], key: [bag], n: count(), names: \"join(item.name, ';')\", total: sum(item.amount)}}", "{csv: out.csv}"), lay: layCSV},
		{name: "merge", flow: mealOf("{merge: {key: [id], kind: full, left: "+mealCSV+", right: {jsonl: {path: in.jsonl, item: {id: int, name: string}}}}}", "{csv: out.csv}"), lay: func(s *scene, n int) {
			layCSV(s, n)
			s.lay("in.jsonl", "", "", n, func(i int) string { return mealObject(i*2/3) + "\n" })
		}},
		{name: "http", flow: mealOf("{http: {url: \"${params.api}\", items: data, page: {cursor: next, param: after}, item: "+mealRow+"}}", "{csv: out.csv}"), lay: layAPI},
		{name: "route", flow: mealOf(mealCSV, "{route: [{when: item.id % 2 == 0, writer: {csv: even.csv}}, {when: item.id % 3 == 0, writer: {json: third.json}}, {writer: "+table+"}]}"), lay: layCSV},
		{name: "lookup in a file", flow: mealOf(mealCSV, "{csv: out.csv}", "    processor: {lookup: {from: {csv: {path: few.csv, item: {id: int, more: string}}}, key: {id: item.id % 100}}}\n"), lay: func(s *scene, n int) {
			layCSV(s, n)
			s.lay("few.csv", "id,more\n", "", 100, func(i int) string { return fmt.Sprintf("%d,more %d\n", i, i) })
		}},
		{name: "table and query", database: true, lay: layCSV, flow: filled + "- step: back\n  chunk: {reader: {query: {sql: \"select id, name, amount from meal\", key: [id]}}, writer: {csv: out.csv}}\n"},
		{name: "table by upsert", database: true, lay: layCSV, flow: created + mealOf(mealCSV, "{table: {name: meal, mode: upsert, key: [id]}}")},
		{name: "table anew", database: true, lay: layCSV, flow: created + mealOf(mealCSV, "{table: {name: meal, mode: replace}}") + "- step: again\n  chunk: {reader: " + mealCSV + ", writer: {table: {name: meal, mode: truncate}}}\n"},
		{name: "dedupe and lookup in a table", database: true, lay: layCSV, flow: filled + "- step: known\n  chunk: {reader: " + mealCSV + ", processor: [{dedupe: [id]}, {lookup: {table: meal, item: {id: int, name: string}, key: {id: item.id}, prefix: known_, max_memory: 1MB}}], writer: {csv: out.csv}}\n"},
	}
}

func mealLine(i int) string {
	return strconv.Itoa(i) + ",name " + strconv.Itoa(i) + "," + cents(int64(i)) + "\n"
}

func mealObject(i int) string {
	return `{"id":` + strconv.Itoa(i) + `,"name":"name ` + strconv.Itoa(i) + `","amount":` + cents(int64(i)) + `}`
}

func layCSV(s *scene, n int) { s.lay("in.csv", "id,name,amount\n", "", n, mealLine) }

func (s *scene) lay(name, begin, end string, n int, row func(i int) string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(s.t, err)
	w := bufio.NewWriter(f)
	fmt.Fprint(w, begin)
	for i := range n {
		fmt.Fprint(w, row(i))
	}
	fmt.Fprint(w, end)
	require.NoError(s.t, w.Flush())
	require.NoError(s.t, f.Close())
}

// layAPI serves pages of 500 rows.
func layAPI(s *scene, n int) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("after")) //nolint:errcheck // none is 0
		to := min(from+500, n)
		list := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			list = append(list, mealObject(i))
		}
		next := "null"
		if to < n {
			next = `"` + strconv.Itoa(to) + `"`
		}
		_, _ = fmt.Fprintf(w, `{"data":[%s],"next":%s}`, strings.Join(list, ","), next) //nolint:errcheck // the reader says what it lacks
	}))
	s.t.Cleanup(server.Close)
	s.params = []string{"api=" + server.URL}
}

func TestMemoryDoesNotGrowWithTheInput(t *testing.T) {
	if !isSoak() {
		t.Skip("it reads millions of rows: make soak")
	}
	const rows, times, larger = 50_000, 10, 1.5
	for _, m := range meals() {
		t.Run(m.name, func(t *testing.T) {
			databases := map[string]func(testing.TB) string{"sqlite": testdb.SQLite}
			if m.database {
				databases["postgres"] = testdb.Postgres
			}
			for name, database := range databases {
				small := m.peak(t, database(t), rows)
				large := m.peak(t, database(t), rows*times)
				t.Logf("%s: %d MB with %d rows, %d MB with %d rows", name, small>>10, rows, large>>10, rows*times)
				require.LessOrEqual(t, float64(large), larger*float64(small), "the process grew from %d to %d KB", small, large)
			}
		})
	}
}

func (m meal) peak(t *testing.T, url string, rows int) int64 {
	t.Helper()
	s := newScene(t, url, map[string]string{"job.yaml": "job: meal\nparameters: {api: {type: string, default: \"\"}}\nflow:\n" + m.flow})
	m.lay(s, rows)
	p := s.start(append([]string{"run", "job.yaml"}, s.params...)...)
	largest := p.largest()
	code, out := p.wait()
	require.Zero(t, code, out)
	require.NoError(t, os.RemoveAll(s.dir))
	return largest
}

// largest waits for the end and returns the largest resident size in KB. For a child, getrusage returns at
// least the size of its parent, which has had its memory up to exec.
func (p *process) largest() (kb int64) {
	for !p.waitFor(20 * time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
		if err != nil {
			continue // it has just ended
		}
		if _, rest, found := strings.Cut(string(text), "VmHWM:"); found {
			var now int64
			if _, err := fmt.Sscan(rest, &now); err == nil {
				kb = max(kb, now)
			}
		}
	}
	return kb
}
