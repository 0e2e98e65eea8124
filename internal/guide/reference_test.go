package guide

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

type exampleData struct {
	files  map[string]string
	tables map[string][]string // statements by database; "" means the default one
	params []string
	// file and text are a file's final content; query and rows, a query's answer.
	file, text string
	query      string
	rows       []string
	fails      string
	notRun     string
}

const (
	people   = "id,name\n1,Ann\n2,Bob\n"
	customer = "select id, name from customer order by id"
)

var aCustomers = []string{
	"create table customer (id bigint primary key, name text, born date)", "insert into customer values (1, 'Ann', '1990-01-01'), (2, 'Bob', '2020-01-01')",
}

var someOrders = []string{
	"create table orders (id bigint primary key, amount decimal(8,2), region text, day date)",
	"insert into orders values (1, 1.5, 'north', '2026-01-01'), (2, 2.5, 'south', '2026-01-02'), (3, 3.5, 'north', '2025-01-01')",
}

func examples() map[string]exampleData {
	return map[string]exampleData{
		"reader-csv": {files: map[string]string{"in.csv": "id,name,Paid On\n1,Ann,2026-11-20\n",
			"report.csv": "Report\r\n\r\n ID;Name;PAID\r\n2;'M\xfcller; x';Ja\r\n3;NA;Nein\r\n4\r\nTotal;3\r\n"},
			query: "select id, name from customer where paid = '2026-11-20' union all select id, coalesce(name, 'null') || coalesce(cast(paid as text), 'null') from report order by id",
			rows:  []string{"1|Ann", "2|Müller; x1", "3|null0", "4|nullnull"}},
		"reader-files": {files: map[string]string{"in/a.csv": people, "in/b.csv": "id,name\n3,Cid\n"}, query: "select count(*), count(distinct source) from customer", rows: []string{"3|2"}},
		"reader-fixed": {files: map[string]string{"in.txt": "H\nD000000001" + pad("Ann", 30) + "\nT0000001\n"}, query: customer, rows: []string{"1|Ann"}},
		"reader-group": {files: map[string]string{"sales.csv": "shop,day,amount\na,2026-01-01,1\na,2026-01-02,2\nb,2026-01-01,5\n"},
			file: "out/shops.csv", text: "shop,sales,total,last_day\na,2,3,2026-01-02\nb,1,5,2026-01-01\n"},
		"reader-http":  {notRun: "it asks a server; the cookbook has one"},
		"reader-json":  {files: map[string]string{"in.json": `{"flights": [{"date": "2026-01-01", "delay": 5}]}`}, file: "out/flights.csv", text: "date,delay\n2026-01-01,5\n"},
		"reader-jsonl": {files: map[string]string{"in.jsonl": "{\"id\": 1, \"name\": \"Ann\"}\n"}, query: customer, rows: []string{"1|Ann"}},
		"reader-lines": {files: map[string]string{"in.log": "INFO a\nERROR b\n"}, file: "out/errors.log", text: "ERROR b\n"},
		"reader-merge": {files: map[string]string{"orders.csv": "id,customer,amount\n7,1,1.50\n8,2,2\n", "customers.csv": "customer,name\n1,Ann\n"},
			file: "out/orders.csv", text: "id,customer,amount,name\n7,1,1.50,Ann\n8,2,2,\n"},
		"reader-query": {tables: map[string][]string{"": append([]string{"create table visit (name text, day date)", "insert into visit values ('Ann', '2026-01-01'), ('Ann', '2026-01-01'), ('Bob', '2026-01-02')"}, aCustomers...)},
			params: []string{"date=2000-01-01"}, file: "out/customers.csv", text: "id,name\n1,Ann\n", query: "select count(*), count(distinct name) from visit_copy", rows: []string{"3|2"}},

		"processor-dedupe": {files: map[string]string{"in.csv": "id,name\n1,Ann\n0,x\n1,Ann\n"}, query: customer, rows: []string{"1|Ann"}},
		"processor-filter": {files: map[string]string{"in.csv": "id,name,date\n1,Ann,2026-01-01\n2,Bob,2020-01-01\n"}, params: []string{"year=2026"}, query: customer, rows: []string{"1|Ann"}},
		"reader-skips":     {files: map[string]string{"in.csv": "id,name\n1,Ann\nx,Bob\n"}, file: "out/bad.csv", text: "line,class\n3,parse\n"},
		"processor-lookup": {files: map[string]string{"in.csv": "id,species\n1,Gull\n2,Owl\n", "species.csv": "species,size,weight\nGull,small,0.5\n"},
			file: "out/strikes.csv", text: "id,species,size\n1,Gull,small\n2,Owl,\n"},
		"processor-map":      {files: map[string]string{"in.csv": "id,name,species\n1, Ann ,\n"}, file: "out/strikes.jsonl", text: "{\"id\":1,\"name\":\"Ann\",\"species\":\"unknown\"}\n"},
		"processor-validate": {files: map[string]string{"in.csv": "id,airport,cost\n1,FRA,2.5\n2,,1\n3,FRA,-1\n"}, query: "select id, airport from strike", rows: []string{"1|FRA"}},

		"writer-csv": {files: map[string]string{"out/all.csv": "id;name\r\n0;x"}, tables: map[string][]string{"": aCustomers},
			file: "out/all.csv", text: "id;name\r\n0;x\r\n1;Ann\r\n2;Bob\r\n"},
		"writer-fixed": {files: map[string]string{"in.csv": people}, file: "out/pay.txt", text: "H\nD000000001" + pad("Ann", 30) + "\nD000000002" + pad("Bob", 30) + "\nT0000002\n"},
		"writer-json":  {files: map[string]string{"in.csv": people}, file: "out/items.json", text: "[\n{\"id\":1,\"who\":{\"name\":\"Ann\"}},\n{\"id\":2,\"who\":{\"name\":\"Bob\"}}\n]\n"},
		"writer-jsonl": {files: map[string]string{"in.csv": people}, file: "out/items.jsonl", text: "{\"id\":1,\"name\":\"Ann\"}\n{\"id\":2,\"name\":\"Bob\"}\n"},
		"writer-lines": {files: map[string]string{"in.csv": people}, file: "out/names.txt", text: "ANN\nBOB\n"},
		"writer-route": {files: map[string]string{"in.csv": "id,name\n1,Ann\n2000,Bob\n"}, query: "select id, name from old_customer", rows: []string{"1|Ann"}, file: "out/rest.csv", text: "id,name\n2000,Bob\n"},
		"writer-table": {files: map[string]string{"in.csv": people, "members.csv": "id,name,email\n2,Bob,b@example.org\n", "prices.csv": "id,price,remark\n"},
			tables: map[string][]string{"": {"create table member (id bigint, name text, left_at timestamp)", "create unique index member_id on member (id) where left_at is null",
				"insert into member values (2, 'Bo', '2020-01-01'), (1, 'Ann', null), (2, 'Bob', null)", "create table price (id bigint primary key, price decimal(8,2))", "insert into price values (1, 2.50)"}},
			query: "select 'customer', name from customer union all select 'member', name || ' ' || coalesce(email, '') from member where left_at is null union all select 'left', name from member where left_at is not null union all select 'price', count(*) from price order by 1, 2",
			rows:  []string{"customer|Ann", "customer|Bob", "left|Ann", "left|Bo", "member|Bob b@example.org", "price|0"}},

		"tasklet-check": {tables: map[string][]string{"": {"create table airports (code text)", "create table strikes (id bigint, airport text, phase text, flown date)",
			"insert into airports values ('FRA')", "insert into strikes values (1, 'FRA', 'Climb', '2026-01-01'), (1, 'MUC', 'Parked', '2027-01-01')"}},
			params: []string{"date=2026-11-20"}, fails: "unique", query: "select count(distinct check_name) from check_failures", rows: []string{"4"}},
		"tasklet-compare": {tables: map[string][]string{
			"legacy": {"create table kunde (id bigint primary key, name text, saldo decimal(8,2))", "insert into kunde values (1, 'Ann', 2.50)"},
			"core":   {"create table customer (id bigint primary key, name text, balance decimal(8,2))", "insert into customer values (1, 'Ann', 2.5)"},
		}},
		"tasklet-fail":      {params: []string{"date=2025-12-31"}, fails: "there are no strikes of 2025-12-31: choose a later date"},
		"tasklet-files":     {files: map[string]string{"in/a.csv": people}, file: "done/a.csv", text: people, query: customer, rows: []string{"1|Ann", "2|Bob"}},
		"tasklet-http":      {notRun: "it asks a server; jobs/everyday.yaml has one"},
		"tasklet-mail":      {notRun: "it needs a mail server"},
		"tasklet-migration": {files: map[string]string{"migrations/1_a.up.sql": "create table a (b int)"}, query: "select count(*) from a", rows: []string{"0"}},
		"tasklet-shell":     {files: map[string]string{"work.sh": "#!/bin/sh\necho \"$LEVEL $1\" > worked\n"}, params: []string{"date=2026-11-20"}, file: "worked", text: "3 2026-11-20\n"},
		"tasklet-sql": {tables: map[string][]string{"": {"create table strikes (year int, cost double precision)", "insert into strikes values (2026, 1.5), (2026, 2), (2025, 1)", "create table note (n int, total double precision)"}},
			params: []string{"year=2026"}, query: "select n, total from note", rows: []string{"2|3.5"}},
		"partitioner-parquet": {notRun: "contrib/parquet runs it"}, "reader-parquet": {notRun: "contrib/parquet runs it"}, "writer-parquet": {notRun: "contrib/parquet runs it"}, "place-s3": {notRun: "contrib/s3 runs it"},
		"tasklet-wait_file": {notRun: "it waits for half a minute; jobs/everyday.yaml has one"},

		"partitioner-count": {tables: map[string][]string{"": someOrders}, query: "select count(*), sum(amount) from bill", rows: []string{"3|7.5"}},
		"partitioner-files": {files: map[string]string{"in/a.csv": people, "in/b.csv": "id,name\n3,Cid\n"}, query: "select count(*) from customer", rows: []string{"3"}},
		"partitioner-lines": {files: map[string]string{"in.csv": people}, query: "select count(*) from customer", rows: []string{"2"}},
		"partitioner-range": {tables: map[string][]string{"": someOrders}, query: "select count(*), sum(amount) from bill", rows: []string{"3|7.5"}},
		"partitioner-query": {tables: map[string][]string{"": append([]string{"create table region (code text, since date, active boolean)", "insert into region values ('north', '2026-01-01', true), ('south', '2026-01-01', true), ('west', '2026-01-01', false)"}, someOrders...)},
			file: "out/north.csv", text: "id,amount\n1,1.5\n"},
	}
}

func pad(text string, width int) string { return text + strings.Repeat(" ", width-len(text)) }

func TestTheExamplesOfTheReferenceRun(t *testing.T) {
	t.Parallel()
	all := examples()
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "reference", "*-*.md"))
	require.NoError(t, err)
	for _, file := range pages {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		text := page(t, "docs/reference/"+name+".md")
		if !strings.Contains(text, "\n## Example\n") { // job-file.md, state-machines.md
			continue
		}
		data, known := all[name]
		require.True(t, known, "the example of %s has no data in this test", name)
		delete(all, name)
		if data.notRun != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data.run(t, block(t, section(t, text, "## Example"), "yaml"))
		})
	}
	require.Empty(t, all, "these have no page")
}

func (d exampleData) run(t *testing.T, example string) {
	t.Helper()
	options := []batchtest.Option{}
	for name := range d.tables {
		if name != "" {
			options = append(options, batchtest.OnDatabase(name, "sqlite:"+filepath.Join(t.TempDir(), name+".db")))
		}
	}
	e := batchtest.New(t, options...)
	for name, statements := range d.tables {
		for _, statement := range statements {
			_, err := e.Database(name).Conn().ExecContext(t.Context(), statement)
			require.NoError(t, err, statement)
		}
	}
	for name, text := range d.files {
		path := e.File(name, text)
		if strings.HasSuffix(name, ".sh") {
			require.NoError(t, os.Chmod(path, 0o700)) //nolint:gosec // a script
		}
	}
	run := e.Job(e.File("example.yaml", example), d.params...)
	if d.fails != "" {
		run.Failed(d.fails)
	} else {
		run.Completed()
	}
	if d.file != "" {
		text, err := os.ReadFile(e.Path(d.file))
		require.NoError(t, err)
		require.Equal(t, d.text, string(text))
	}
	if d.query != "" {
		e.HasRows(d.query, d.rows...)
	}
}
