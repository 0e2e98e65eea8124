package jobfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type folder struct {
	*testengine.Engine
	dir string
}

func newFolder(t *testing.T, url string, files map[string]string) *folder {
	t.Helper()
	f := &folder{Engine: testengine.New(t, url), dir: t.TempDir()}
	for name, text := range files {
		f.write(t, name, text)
	}
	return f
}

func (f *folder) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (f *folder) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	require.NoError(t, err)
	return string(text)
}

func (f *folder) job(t *testing.T, flow string) *model.Job {
	t.Helper()
	file, err := jobfile.Parse(filepath.Join(f.dir, "job.yaml"), []byte("job: j\nflow:\n"+flow), shipped(t))
	require.NoError(t, err)
	compiled, err := file.Compile(jobfile.Deps{Provider: f.Provider, Registry: shipped(t)})
	require.NoError(t, err)
	return compiled
}

func (f *folder) run(t *testing.T, j *model.Job, want core.Status) *core.JobExecution {
	t.Helper()
	params, err := job.ValidateParameters(nil, nil)
	require.NoError(t, err)
	exec, err := f.Launcher.Run(t.Context(), j, params, nil)
	require.NoError(t, err)
	require.Equal(t, want, exec.Status, exec.Error)
	return exec
}

func (f *folder) texts(t *testing.T, columns int, query string) []string {
	t.Helper()
	rows, err := f.Database.Conn().QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	list := []string{}
	for rows.Next() {
		cells, places := make([]any, columns), make([]any, columns)
		for i := range cells {
			places[i] = &cells[i]
		}
		require.NoError(t, rows.Scan(places...))
		texts := make([]string, columns)
		for i, cell := range cells {
			if text, is := cell.([]byte); is {
				cell = string(text)
			}
			texts[i] = fmt.Sprint(cell)
		}
		list = append(list, strings.Join(texts, ","))
	}
	require.NoError(t, rows.Err())
	return list
}

func refused(t *testing.T, flow string) string {
	t.Helper()
	_, err := jobfile.Parse("job.yaml", []byte("job: j\nflow:\n"+flow), shipped(t))
	require.Error(t, err)
	return err.Error()
}

const orders = "id,currency,amount\n1,EUR,10\n2,USD,20\n3,XXX,30\n4,,40\n5,USD,50\n"

func lookingUp(lookup string) string {
	return `
- step: load
  chunk:
    size: 2
    reader: {csv: {path: orders.csv, item: {id: int, currency: {type: string null, null_if: [""]}, amount: int}}}
    processor:
    - lookup: ` + lookup + `
    - map: {only: true, id: item.id, rate: "item.rate ?? -1.0"}
    writer: {table: enriched}
    skip: {limit: 10, errors: [validate]}
`
}

func TestARowGetsTheFieldsOfTheRowWithItsKeyFromAFileAndFromATable(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		f := newFolder(t, url, map[string]string{"orders.csv": orders, "rates.csv": "code,rate\nEUR,1\nUSD,0.5\n"})
		f.Exec("create table enriched (id bigint primary key, rate double precision)")
		f.Exec("create table rates (currency text, rate double precision, note text)")
		f.Exec("insert into rates values ('EUR', 1, 'a'), ('USD', 0.5, 'b'), ('usd', 9, 'c')")
		file := `{from: {csv: {path: rates.csv, item: {currency: {type: string, from: code}, rate: float}}}, key: {currency: item.currency}`
		table := `{table: rates, item: {currency: string, rate: float}, key: {currency: item.currency}`
		for i, from := range []string{file, table} {
			for j, c := range []struct {
				missing string
				rates   []string
				counted [3]int64 // written, filtered, skipped
			}{
				{"", []string{"1,1", "2,0.5", "5,0.5"}, [3]int64{3, 0, 2}},
				{", missing: skip", []string{"1,1", "2,0.5", "5,0.5"}, [3]int64{3, 2, 0}},
				{", missing: null", []string{"1,1", "2,0.5", "3,-1", "4,-1", "5,0.5"}, [3]int64{5, 0, 0}},
				{", missing: default, default: {rate: item.amount / 10.0}", []string{"1,1", "2,0.5", "3,3", "4,4", "5,0.5"}, [3]int64{5, 0, 0}},
			} {
				f.Exec("delete from enriched")
				named := strings.ReplaceAll(lookingUp(from+c.missing+"}"), "step: load", fmt.Sprintf("step: load%d%d", i, j))
				text := f.job(t, named)
				text.Name = fmt.Sprintf("j%d%d", i, j)
				exec := f.run(t, text, core.StatusCompleted)
				require.Equal(t, c.rates, f.texts(t, 2, "select id, rate from enriched order by id"), c.missing)
				n := f.Step(exec, fmt.Sprintf("load%d%d", i, j)).Counters
				require.Equal(t, c.counted, [3]int64{n.Write, n.Filter, n.ProcessSkip}, c.missing)
			}
		}
	})
}

func TestALookupThatIsAmbiguousOrTooLargeFailsWithThePlace(t *testing.T) {
	t.Parallel()
	f := newFolder(t, testdb.SQLite(t), map[string]string{"orders.csv": orders, "twice.csv": "currency,rate\nEUR,1\nEUR,2\n"})
	f.Exec("create table enriched (id bigint primary key, rate double precision)")
	exec := f.run(t, f.job(t, lookingUp(`{from: {csv: {path: twice.csv, item: {currency: string, rate: float}}}, key: {currency: item.currency}}`)), core.StatusFailed)
	require.Contains(t, exec.Error, `twice.csv:3: a second row with currency = "EUR"`)
	exec = f.run(t, f.job(t, lookingUp(`{from: {csv: {path: twice.csv, item: {currency: string, rate: float}}}, max_memory: 100, key: {currency: item.currency}}`)), core.StatusFailed)
	require.Contains(t, exec.Error, `twice.csv:2: the rows to look up take more than max_memory, 100 bytes`)
}

func TestMistakesInALookupAreFoundAtTheirPlace(t *testing.T) {
	t.Parallel()
	text := refused(t, lookingUp(`{from: {csv: {path: r.csv, itm: {currency: string, rate: float}}}, key: {currency: item.currency}}`))
	require.Contains(t, text, `job.yaml:9:42: unknown key "itm" in reader csv`)
	text = refused(t, lookingUp(`{from: {csv: {path: r.csv, item: {currency: string, rate: float}}}, key: {curency: item.currency}}`))
	require.Contains(t, text, "job.yaml:9:98: processor lookup: key.curency: the rows that are looked up have no field curency (did you mean currency?)")
	text = refused(t, lookingUp(`{from: {csv: {path: r.csv, item: {currency: int, rate: float}}}, key: {currency: item.currency}}`))
	require.Contains(t, text, "currency is of type int, but it is compared with a string: write int(...)")
	text = refused(t, lookingUp(`{from: {fixed: {path: r.csv, item: {currency: string, rate: float}, columns: {currncy: 1-3, rate: 4-9}}}, key: {currency: item.currency}}`))
	require.Contains(t, text, "reader fixed: columns")
	text = refused(t, lookingUp(`{key: {currency: item.currency}}`))
	require.Contains(t, text, "the source is missing: write from: {csv: {path: FILE, item: TYPE}}, or table: NAME")
}

func TestTotalsByKeyAreExactOverARestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var sales strings.Builder
		sales.WriteString("shop,amount\n")
		want, bad := []string{}, 0
		for shop := range 30 {
			for i := range shop*7%100 + 1 {
				fmt.Fprintf(&sales, "%02d,%d\n", shop, i)
				if i == 3 {
					fmt.Fprintf(&sales, "%02d,x\n", shop)
					bad++
				}
			}
			n := shop*7%100 + 1
			want = append(want, fmt.Sprintf("%02d,%d,%d", shop, n, n*(n-1)/2))
		}
		f := newFolder(t, url, map[string]string{"sales.csv": sales.String()})
		f.Exec("create table total (shop varchar(9) primary key, n bigint, amount bigint)")
		j := f.job(t, `
- step: load
  chunk:
    size: 4
    reader:
      group:
        reader: {csv: {path: sales.csv, item: {shop: string, amount: int}}}
        key: [shop]
        sorted: true
        n: count()
        amount: sum(item.amount)
    writer: {table: total}
    skip: {limit: 100, errors: [parse]}
`)
		for _, shop := range []string{"06", "17", "29"} {
			f.Exec("insert into total (shop) values ('" + shop + "')") // in the way
		}
		for _, shop := range []string{"06", "17", "29"} {
			f.run(t, j, core.StatusFailed)
			f.Exec("delete from total where n is null and shop = '" + shop + "'")
		}
		f.run(t, j, core.StatusCompleted)
		require.Equal(t, want, f.texts(t, 3, "select shop, n, amount from total order by shop"))
		require.Len(t, f.texts(t, 1, "select id from surfin_skipped_item"), bad, "each bad row once")
	})
}

func TestManyFilesAreOneInputOverARestart(t *testing.T) {
	t.Parallel()
	f := newFolder(t, testdb.SQLite(t), map[string]string{"in/a.csv": "id\n1\n2\n3\n", "in/b.csv": "id\n4\nx\n5\n", "in/c.csv": "id\n6\n7\n"})
	f.Exec("create table seen (id bigint primary key, source text)")
	j := f.job(t, `
- step: load
  chunk:
    size: 2
    reader: {files: {glob: in/*.csv, reader: {csv: {item: {id: int}}}}}
    processor: {map: {source: "replace(meta.path, '`+f.dir+`/', '') + ':' + string(meta.line)"}}
    writer: {table: seen}
    skip: {limit: 5, errors: [parse]}
`)
	f.Exec("create trigger t before insert on seen when new.id in (3, 5) begin select raise(abort, 'no'); end")
	for _, drop := range []string{"3", "5"} {
		f.run(t, j, core.StatusFailed)
		f.Exec("drop trigger t")
		f.write(t, "in/b2_"+drop+".csv", "id\n99\n")
		if drop == "3" {
			f.Exec("create trigger t before insert on seen when new.id = 5 begin select raise(abort, 'no'); end")
		}
	}
	f.run(t, j, core.StatusCompleted)
	require.Equal(t, []string{"1,in/a.csv:2", "2,in/a.csv:3", "3,in/a.csv:4", "4,in/b.csv:2", "5,in/b.csv:4", "6,in/c.csv:2", "7,in/c.csv:3"},
		f.texts(t, 2, "select id, source from seen order by id"))
	require.Len(t, f.texts(t, 1, "select id from surfin_skipped_item"), 1)
}

const routing = `
- step: load
  chunk:
    size: 4
    reader: {csv: {path: in.csv, item: {id: int, country: string}}}
    writer:
      route:
      - {when: item.country == 'DE', name: home, writer: {table: home}}
      - {when: item.country == 'FR', name: abroad, writer: {table: abroad}}
      - {name: rest, writer: {csv: out/rest.csv}}
    skip: {limit: 1, errors: [not_null, check]}
  promote: {route.home: home, route.rest: rest}
- step: note
  tasklet: {sql: "insert into noted values (${int(context.home ?? '0')}, ${int(context.rest ?? '0')})"}
`

func TestEachItemGoesToItsWriterAndTheNumbersAreExactOverRestarts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var input strings.Builder
		input.WriteString("id,country\n")
		for i := range 24 {
			fmt.Fprintf(&input, "%d,%s\n", i, []string{"DE", "FR", "IT"}[i%3])
		}
		f := newFolder(t, url, map[string]string{"in.csv": input.String()})
		f.Exec("create table home (id bigint primary key check (id <> 9), country text)")
		f.Exec("create table abroad (id bigint primary key, country text)")
		f.Exec("create table noted (home bigint, rest bigint)")
		f.Exec("insert into abroad values (7, 'in the way'), (16, 'in the way')")
		j := f.job(t, routing)
		for _, id := range []string{"7", "16"} {
			f.run(t, j, core.StatusFailed)
			require.NoFileExists(t, filepath.Join(f.dir, "out", "rest.csv"))
			f.Exec("delete from abroad where country = 'in the way' and id = " + id)
		}
		f.run(t, j, core.StatusCompleted)
		require.Equal(t, []int64{0, 3, 6, 12, 15, 18, 21}, f.Ints("select id from home order by id"), "9 is skipped")
		require.Equal(t, []int64{1, 4, 7, 10, 13, 16, 19, 22}, f.Ints("select id from abroad order by id"))
		require.Equal(t, "id,country\n2,IT\n5,IT\n8,IT\n11,IT\n14,IT\n17,IT\n20,IT\n23,IT\n", f.read(t, "out/rest.csv"))
		require.Equal(t, []string{"7,8"}, f.texts(t, 2, "select home, rest from noted"))
	})
}

func TestMistakesInARouteAreFoundAtTheirPlace(t *testing.T) {
	t.Parallel()
	text := refused(t, strings.Replace(routing, "item.country == 'FR'", "item.contry == 'FR'", 1))
	require.Contains(t, text, "job.yaml:11:21: writer route: item has no field contry (did you mean country?)")
	text = refused(t, strings.Replace(routing, "when: item.country == 'DE', ", "", 1))
	require.Contains(t, text, "route 1 has no condition, so the routes after it would get nothing: write when, or put it last")
	text = refused(t, strings.Replace(routing, "{table: abroad}", "{table: {name: abroad, database: other}}", 1))
	require.Contains(t, text, "the writers of one step write to one database")
	text = refused(t, strings.Replace(routing, "{table: abroad}", "{csv: out/../out/rest.csv}", 1))
	require.Contains(t, text, "is also the file of writer csv")
}

const deduping = `
- step: load
  chunk:
    size: 3
    reader: {csv: {path: in.csv, item: {id: int, name: {type: string null, null_if: [""]}}}}
    processor: {dedupe: {key: [id, name]REPEATED}}
    writer: {table: target}
    skip: {limit: 9, errors: [validate, check]}
`

// 13 never fits: each of its rows is skipped, and none of them is the first
// row for the next one.
func TestOfRowsWithOneKeyTheFirstOnePassesAlsoOverRestarts(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		f := newFolder(t, url, map[string]string{"in.csv": "id,name\n1,a\n1,b\n1,a\n13,x\n2,\n13,x\n3,a\n2,\n1,a\n13,x\n4,a\n3,a\n1,a\n5,a\n"})
		f.Exec("create table target (id bigint check (id <> 13), name varchar(9), unique (id, name))")
		for i, c := range []struct {
			repeated       string
			filtered       int64
			skipped        int
			blockedAt, now string
		}{{"", 5, 3, "(3, 'a')", "id = 3"}, {", repeated: reject", 0, 8, "(5, 'a')", "id = 5"}} {
			f.Exec("delete from surfin_skipped_item")
			f.Exec("delete from target")
			f.Exec("insert into target values " + c.blockedAt)
			j := f.job(t, strings.Replace(deduping, "REPEATED", c.repeated, 1))
			j.Name = fmt.Sprint("dedupe", i)
			first := f.Step(f.run(t, j, core.StatusFailed), "load").Counters
			require.NotEmpty(t, f.texts(t, 1, "select scope from surfin_seen_key"))
			f.Exec("delete from target where " + c.now)
			last := f.Step(f.run(t, j, core.StatusCompleted), "load").Counters
			require.Equal(t, []string{"1,a", "1,b", "2,none", "3,a", "4,a", "5,a"}, f.texts(t, 2, "select id, coalesce(name, 'none') from target order by id, name"))
			require.EqualValues(t, 6, first.Write+last.Write)
			require.Equal(t, c.filtered, first.Filter+last.Filter)
			require.Len(t, f.texts(t, 1, "select id from surfin_skipped_item"), c.skipped)
			require.Empty(t, f.texts(t, 1, "select scope from surfin_seen_key"), "the step is complete")
		}
	})
}

func TestDedupeAndConcurrencyExcludeEachOther(t *testing.T) {
	t.Parallel()
	text := refused(t, strings.NewReplacer("REPEATED", "", "size: 3", "concurrency: 2").Replace(deduping))
	require.Contains(t, text, "job.yaml:6:5: concurrency and the processor dedupe exclude each other")
	text = refused(t, strings.NewReplacer("REPEATED", "", "[id, name]", "[idd]").Replace(deduping))
	require.Contains(t, text, "the item has no field idd (did you mean id?)")
}
