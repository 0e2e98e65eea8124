package guide

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

type Measured struct {
	ID    int64   `json:"id"`
	Wide  float64 `json:"wide"`
	Small float32 `json:"small"`
}

const numbersJob = `job: numbers
parameters: {limit: {type: float, default: 1e6}}
types: {plain: {id: int, wide: float, small: float}}
flow:
- step: ask
  tasklet: {sql: {query: "select small from measured where id = 2", out: {small: float}}}
%s
`

func numbersSteps(item string) string {
	var b strings.Builder
	for _, target := range []string{
		`{csv: {path: "%[1]s-${params.limit}-${steps.ask.out.small}.csv"}}`, `{jsonl: {path: "%[1]s.jsonl"}}`, `{json: {path: "%[1]s.json"}}`, `{table: %[1]s_text}`,
	} {
		name := target[1:strings.IndexByte(target, ':')]
		fmt.Fprintf(&b, "- step: %s_%s\n  chunk:\n    reader: {query: {sql: \"select id, wide, small from measured\", key: [id], item: %s}}\n    writer: %s\n",
			item, name, item, fmt.Sprintf(target, item))
	}
	return b.String()
}

// Rule D7.
func TestANumberHasOneTextInEveryTarget(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Item[Measured]("measured")))
		e.Exec("create table measured (id bigint primary key, wide double precision, small real)")
		e.Exec("insert into measured values (1, 1000000, 1000000), (2, 1e-7, 0.1), (3, -0.0, 16777.217), (4, 1e15, 1e21)")
		texts := [][2]string{{"1000000", "1000000"}, {"0.0000001", "0.1"}, {"0", "16777.217"}, {"1000000000000000", "1e+21"}}
		for _, item := range []string{"plain", "measured"} {
			e.Exec("create table " + item + "_text (id bigint, wide text, small text)")
		}
		e.Job(e.File("numbers.yaml", fmt.Sprintf(numbersJob, numbersSteps("plain")+numbersSteps("measured")))).Completed()
		for _, item := range []string{"plain", "measured"} {
			csv, jsonl, rows := "id,wide,small\n", "", []string{}
			for i, x := range texts {
				csv += fmt.Sprintf("%d,%s,%s\n", i+1, x[0], x[1])
				jsonl += fmt.Sprintf("{\"id\":%d,\"wide\":%s,\"small\":%s}\n", i+1, x[0], x[1])
				rows = append(rows, fmt.Sprintf("%d|%s|%s", i+1, x[0], x[1]))
			}
			e.HasRows("select id, wide, small from "+item+"_text order by id", rows...)
			for name, want := range map[string]string{item + "-1000000-0.1.csv": csv, item + ".jsonl": jsonl} {
				got, err := os.ReadFile(e.Path(name))
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
			got, err := os.ReadFile(e.Path(item + ".json"))
			require.NoError(t, err)
			for line := range strings.Lines(jsonl) {
				require.Contains(t, string(got), strings.TrimSpace(line))
			}
		}
	})
}
