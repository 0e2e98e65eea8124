package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestTestsOfJobsRunOnADatabaseOfTheirOwn(t *testing.T) {
	t.Parallel()
	files := shippedJob(t, "nested.yaml", "nested_test.yaml", "data/stations.geojson", "data/orders.json")
	files["bad_test.yaml"] = strings.NewReplacer("sku: tea, count: 2", "sku: tee, count: 2", "written: 2, skipped: 3", "written: 3, skipped: 3",
		"index: 3, row: 1", "index: 3, row: 9").Replace(files["nested_test.yaml"])
	files["wrong_test.yaml"] = "job: nested.yaml\ntests:\n- name: a\n  expects: {}\n  files: {a.csv: [1]}\n"
	s := newScene(t, "postgres://nobody@127.0.0.1:1/none", files)
	code, out := s.run("test", "nested_test.yaml")
	require.Zero(t, code, out)
	require.Contains(t, out, "2 passed, 0 failed\n")

	code, out = s.run("test", "bad_test.yaml", "--junit", "report.xml")
	require.Equal(t, 1, code)
	for _, want := range []string{
		"FAIL  bad_test.yaml: bad elements are skipped, and all others are in the tables", "step lines: expected written 3, got 2\n",
		"table order_line (- expected, + got):\n", "\n      - 1 | 1 | Ann | tee | 2 | 2026-11-20 | 4.50 | null\n", "\n      + 1 | 1 | Ann | tea | 2 | 2026-11-20 | 4.5 | null\n",
		"skips (- expected, + got):\n", "1 passed, 1 failed\n",
	} {
		require.Contains(t, out, want)
	}
	require.Contains(t, s.read("report.xml"), `tests="2" failures="1"`)

	code, out = s.run("test", "wrong_test.yaml")
	require.Equal(t, 2, code)
	require.Contains(t, out, `wrong_test.yaml:4:3: unknown key "expects"`)
	require.Contains(t, out, "wrong_test.yaml:5:19: ")
}

const copyJob = `job: copy
parameters: {least: {type: int, default: 1}}
flow:
- step: copy
  chunk:
    reader: {query: {database: warehouse, sql: "select id, name, price from product where id >= ${params.least} order by id", key: [id], item: {id: int, name: string, price: decimal null}}}
    writer: {table: {name: shop_product, key: [id]}}
`

const copyTest = `job: copy.yaml
databases: {default: DEFAULT, warehouse: WAREHOUSE}
tests:
- name: products are copied
  params: {least: 2}
  sql: create table shop_product (id int primary key, name varchar(20), price decimal(9,2))
  in:
    warehouse:
      sql: create table product (id int primary key, name varchar(20), price decimal(9,2))
      tables: {product: [{id: 1, name: tea, price: 1.5}, {id: 2, name: milk, price: 2.50}, {id: 3, name: ink, price: null}]}
  expect:
    steps: {copy: {read: 2, written: 2}}
    tables: {shop_product: [{id: 2, name: milk, price: 2.5}, {id: 3, name: ink, price: null}]}
    in: {warehouse: {queries: {select count(*) as n from product: [{n: 3}]}}}
`

func TestTestsOfJobsRunOnTheDatabasesThatTheyName(t *testing.T) {
	t.Parallel()
	server := testdb.Postgres(t)
	for name, of := range map[string][2]string{"sqlite": {"sqlite", "sqlite"}, "both": {"env:TEST_DB", "sqlite"}, "postgres": {"env:TEST_DB", "env:TEST_DB"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := strings.NewReplacer("DEFAULT", of[0], "WAREHOUSE", of[1]).Replace(copyTest)
			s := newScene(t, "postgres://nobody@127.0.0.1:1/none", map[string]string{
				"copy.yaml": copyJob, "copy_test.yaml": test, "bad_test.yaml": strings.NewReplacer("{n: 3}", "{n: 4}", "name: milk, price: 2.5}", "name: silk, price: 2.5}").Replace(test),
			})
			s.env = []string{"TEST_DB=" + server}
			code, out := s.run("test", "copy_test.yaml")
			require.Zero(t, code, out)
			require.Contains(t, out, "1 passed, 0 failed\n")
			code, out = s.run("test", "bad_test.yaml")
			require.Equal(t, 1, code, out)
			require.Contains(t, out, "query select count(*) as n from product in warehouse (- expected, + got):")
			require.Contains(t, out, "- 2 | silk | 2.5\n")
		})
	}
	t.Cleanup(func() {
		s := newScene(t, server, nil)
		db, _ := s.open()
		require.Equal(t, []string{"0"}, s.lines(db, "select count(*) from information_schema.schemata where schema_name like 'surfin_test_%'"), "they are dropped")
	})
}

const zonedJob = `job: zoned
timezone: Europe/Berlin
flow:
- step: copy
  chunk:
    reader: {query: {sql: "select id, at, day from visit", key: [id], item: {id: int, at: timestamp null, day: timestamp}}}
    processor: {validate: {ok: "item.at == nil || hour(item.at) == 10 && item.day == timestamp('2026-07-02 00:00:00')"}}
    writer: {table: visit_copy}
`

const zonedTest = `job: zoned.yaml
databases: {default: DEFAULT}
tests:
- name: local times are copied
  sql: create table visit (id int primary key, at AT, day AT, local LOCAL); create table visit_copy (id int primary key, at AT, day AT)
  tables:
    visit:
    - {id: 1, at: "2026-07-02 10:00:00", day: DAY, local: "2026-07-02 10:00:00"}
    - {id: 2, at: "2026-07-02T08:00:00Z", day: DAY, local: "2026-07-02 10:00:00"}
    - {id: 3, at: null, day: DAY, local: "2026-07-02 10:00:00"}
  expect:
    tables:
      visit_copy:
      - {id: 1, at: "2026-07-02 10:00:00", day: 2026-07-02}
      - {id: 2, at: "2026-07-02T10:00:00+02:00", day: "2026-07-01T22:00:00Z"}
      - {id: 3, at: null, day: 2026-07-02}
    queries: {select local from visit where id = 1: [{local: "2026-07-02 10:00:00"}], select at from visit where id < 3: [{at: "2026-07-02 10:00:00"}, {at: "2026-07-02T08:00:00Z"}]}
`

// Rule D5.
func TestALocalTimeOfATestIsInTheTimeZoneOfItsJob(t *testing.T) {
	t.Parallel()
	server := testdb.Postgres(t)
	for name, of := range map[string]*strings.Replacer{
		"sqlite":   strings.NewReplacer("DEFAULT", "sqlite", "AT", "timestamp", "LOCAL", "text", "DAY", `"2026-07-02 00:00:00"`),
		"postgres": strings.NewReplacer("DEFAULT", "env:TEST_DB", "AT", "timestamptz", "LOCAL", "timestamp", "DAY", "2026-07-02"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := of.Replace(zonedTest)
			s := newScene(t, "postgres://nobody@127.0.0.1:1/none", map[string]string{
				"zoned.yaml": zonedJob, "zoned_test.yaml": test,
				"bad_test.yaml": strings.Replace(test, `{at: "2026-07-02 10:00:00"}`, `{at: "2026-07-02 08:00:00"}`, 1),
				"gap_test.yaml": strings.Replace(test, `{id: 1, at: "2026-07-02 10:00:00"`, `{id: 1, at: "2026-03-29 02:30:00"`, 1),
			})
			s.env = []string{"TEST_DB=" + server}
			code, out := s.run("test", "zoned_test.yaml")
			require.Zero(t, code, out)
			code, out = s.run("test", "bad_test.yaml")
			require.Equal(t, 1, code, out)
			require.Contains(t, out, "- 2026-07-02T06:00:00Z\n")
			require.Contains(t, out, "+ 2026-07-02T08:00:00Z\n")
			code, out = s.run("test", "gap_test.yaml")
			require.Equal(t, 1, code, out)
			require.Contains(t, out, "2026-03-29 02:30:00 does not exist in Europe/Berlin")
		})
	}
}

func TestWrongDatabasesOfTestsAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"copy.yaml":      copyJob,
		"kind_test.yaml": strings.NewReplacer("DEFAULT", "sqlite", "WAREHOUSE", "mysql://me:hunter22@h/x").Replace(copyTest),
		"name_test.yaml": strings.NewReplacer(", warehouse: WAREHOUSE", "", "DEFAULT", "sqlite").Replace(copyTest),
		"env_test.yaml":  strings.NewReplacer("DEFAULT", "sqlite", "WAREHOUSE", "env:NO_SUCH_DB").Replace(copyTest),
	})
	for file, says := range map[string]string{
		"kind_test.yaml": "kind_test.yaml:2:41: database warehouse: \"mysql://me:***@h/x\" is not a database for tests",
		"name_test.yaml": "name_test.yaml:8:5: there is no database warehouse",
		"env_test.yaml":  "env_test.yaml: databases: warehouse: the variable NO_SUCH_DB has no URL postgres://",
	} {
		code, out := s.run("test", file)
		require.Equal(t, 2, code, out)
		require.Contains(t, out, says)
		require.NotContains(t, out, "hunter22")
	}
}
