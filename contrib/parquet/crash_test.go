//test:plain

package parquet_test

import (
	"os"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/contrib/parquet"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

const loadJob = `job: load
flow:
- step: load
  chunk:
    size: 23
    reader: {parquet: {path: in.parquet, item: {i64: int null, s: string null, d5: decimal null, ns: timestamp null, ints: list of int null, people: json null}}}
    writer: {table: {name: loaded, create: true}}
`

func place(t *testing.T, e interface{ Path(name string) string }) {
	t.Helper()
	text, err := os.ReadFile("testdata/pyarrow.parquet")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(e.Path("in.parquet"), text, 0o600))
	require.NoError(t, os.WriteFile(e.Path("job.yaml"), []byte(loadJob), 0o600))
}

func TestEachRowIsThereOnceWhereverTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": nil, "postgres": testdb.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
				c.Job, c.Database, c.Again, c.Every = c.Path("job.yaml"), database, 1, 2
				c.Options = append(c.Options, parquet.Module())
				c.Setup = func(t *testing.T, _ *batchtest.Env) { place(t, c) }
				c.Check = func(_ *testing.T, e *batchtest.Env) {
					e.HasRows("select count(*), count(*) - count(i64) from loaded", "100|25")
				}
			})
		})
	}
}

const exportJob = `job: export
flow:
- step: export
  chunk:
    size: 23
    reader: {parquet: {path: in.parquet, item: {i64: int null, s: string null, d5: {type: decimal null, scale: 2}, ns: timestamp null, ints: list of int null, people: json null}}}
    writer: {parquet: {path: out/again.parquet, group_rows: 30}}
- step: load
  chunk:
    reader: {parquet: {path: out/again.parquet, item: {i64: int null, s: string null}}}
    writer: {table: {name: loaded, create: true}}
`

func TestAFileIsWholeWhereverTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
		c.Job, c.Again, c.Every = c.Path("job.yaml"), 1, 2
		c.Options = append(c.Options, parquet.Module())
		c.Setup = func(t *testing.T, _ *batchtest.Env) {
			place(t, c)
			require.NoError(t, os.WriteFile(c.Path("job.yaml"), []byte(exportJob), 0o600))
		}
		c.Check = func(t *testing.T, e *batchtest.Env) {
			e.HasRows("select count(*), count(*) - count(i64) from loaded", "100|25")
			left, err := os.ReadDir(c.Path("out"))
			require.NoError(t, err)
			require.Len(t, left, 1, "parts are left")
		}
	})
}

func TestAnItemThatDoesNotFitIsSkippedAlone(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t, batchtest.With(parquet.Module()))
	e.File("in.csv", "id,price\n1,1.50\n2,1.555\n3,2.50\n4,12345678.00\n5,3\n")
	e.File("job.yaml", `job: export
flow:
- step: export
  chunk:
    size: 4
    skip: {limit: 2, errors: [invalid_item]}
    reader: {csv: {path: in.csv, item: {id: int, price: decimal}}}
    writer: {parquet: {path: out.parquet, columns: {price: "decimal(9,2)"}}}
- step: load
  chunk:
    reader: {parquet: {path: out.parquet, item: {id: int, price: decimal}}}
    writer: {table: {name: loaded, create: true}}
`)
	skipped := e.Job(e.Path("job.yaml")).Completed().Skipped("export")
	require.Len(t, skipped, 2)
	require.Contains(t, skipped[0].Error, "field price: it has more than the column's 2 digits after the point")
	e.HasRows("select id, price from loaded order by id", "1|1.5", "3|2.5", "5|3")
}

func TestThePartsOfAFileReadEachRowOnce(t *testing.T) {
	t.Parallel()
	for parts, want := range map[string]string{"0": "4", "3": "3", "1": "1", "100": "4"} {
		e := batchtest.New(t, batchtest.With(parquet.Module()))
		place(t, e)
		e.File("job.yaml", `job: load
flow:
- step: load
  partition: {by: {parquet: {path: in.parquet, parts: `+parts+`}}, workers: 2}
  chunk:
    size: 7
    reader: {parquet: {path: in.parquet, groups: "${part.groups}", item: {i64: int null}}}
    writer: {table: {name: loaded, create: true}}
`)
		e.Job(e.Path("job.yaml")).Completed()
		e.HasRows("select count(*), count(i64) from loaded", "100|75")
		e.HasRows("select count(*) from surfin_step_execution where name like 'load:%'", want)
	}
}

func TestTheExamplesRun(t *testing.T) {
	t.Parallel()
	for _, c := range parquet.Components() {
		e := batchtest.New(t, batchtest.With(parquet.Module()))
		file, err := os.Create(e.Path("in.parquet"))
		require.NoError(t, err)
		w := pq.NewGenericWriter[price](file)
		_, err = w.Write([]price{{1, 150, 1_000_000}, {2, 25, 2_000_000}})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, file.Close())
		e.File("in.csv", "id,price,at\n1,1.50,2026-11-20T08:30:00Z\n2,0.25,\n")
		e.File("job.yaml", c.Example)
		e.Job(e.Path("job.yaml")).Completed()
	}
}

type price struct {
	ID    int64 `parquet:"id"`
	Price int64 `parquet:"price,decimal(2:18)"`
	At    int64 `parquet:"at,timestamp(microsecond)"`
}
