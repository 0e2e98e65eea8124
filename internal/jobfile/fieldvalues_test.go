package jobfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const dirty = `
job: dirty
timezone: Europe/Berlin
types:
  reading:
    id:    {type: int, coerce: convert}
    name:  {type: string null, null_if: ["", "-"], coerce: convert}
    count: {type: int, null_if: ["n/a", "-999"], default: 7, coerce: default}
    score: {type: float null, coerce: null}
    open:  {type: bool, coerce: convert}
    day:   {type: date, format: d MMM yyyy}
    seen:  {type: timestamp, format: epoch_ms}
    at:    {type: timestamp, format: yyyy-MM-dd HH:mm}
    tokyo: {type: timestamp, format: yyyy-MM-dd HH:mm, zone: Asia/Tokyo}
    more:  {type: string, default: none, optional: true}
flow:
- step: csv
  chunk:
    reader: {csv: {path: in.csv, item: reading}}
    processor: {map: {source: "'csv'"}}
    writer: {table: {name: reading, create: true}}
    skip: 10
- step: json
  chunk:
    reader: {json: {path: in.json, item: reading}}
    processor: {map: {source: "'json'"}}
    writer: {table: reading}
    skip: 10
- step: out
  chunk:
    reader: {query: {sql: "select * from reading where source = 'csv'", key: [id], item: reading}}
    writer: {csv: out.csv}
`

func TestFieldsSayWhatBecomesOfValuesThatDoNotFit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		write("in.csv", `id,name,count,score,open,day,seen,at,tokyo
1.0,-,n/a,x,Y,3 jan 2026,1767445509001,2026-07-01 10:00,2026-07-01 10:00
2,"a
b",many,1.5,0,31 DEC 2025,0,2026-01-01 10:00,2026-01-01 10:00
3,c,1,2,no,3 Janvier 2026,0,2026-01-01 10:00,2026-01-01 10:00
4,c,1,2,no,3 Jan 2026,0,2026-03-29 02:30,2026-01-01 10:00
`)
		write("in.json", `[{"id":"11","name":12.50,"count":-999,"score":"1.5","open":1,"day":"3 Jan 2026","seen":1767445509001,"at":"2026-07-01 10:00","tokyo":"2026-07-01 10:00","more":"x"},
 {"id":12,"name":{"a": [1, 2]},"count":null,"score":[1],"open":"yes","day":"3 Jan 2026","seen":"0","at":"2026-07-01 10:00","tokyo":"2026-07-01 10:00"},
 {"id":"twelve","name":"n","count":1,"score":1,"open":true,"day":"3 Jan 2026","seen":0,"at":"2026-07-01 10:00","tokyo":"2026-07-01 10:00"}]`)
		engine := testengine.New(t, url)
		reg := shipped(t)
		file, err := jobfile.Parse(filepath.Join(dir, "job.yaml"), []byte(dirty), reg)
		require.NoError(t, err)
		compiled, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: reg})
		require.NoError(t, err)
		params, err := job.ValidateParameters(file.Parameters(), nil)
		require.NoError(t, err)
		exec, err := engine.Launcher.Run(t.Context(), compiled, params, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

		require.Equal(t, []int64{1, 2, 11, 12}, engine.Ints("select id from reading order by id"))
		require.Equal(t, []int64{7, 7, 7, 7}, engine.Ints("select count from reading order by id"))
		require.Equal(t, []int64{1, 0, 1, 1}, engine.Ints("select case when open then 1 else 0 end from reading order by id"))
		require.Equal(t, []int64{1, 11, 12}, engine.Ints(`select id from reading where name is null and score is null
			or name = '12.50' and more = 'x' and score = 1.5 or name = '{"a":[1,2]}' and more = 'none' and score is null order by id`))
		out, err := os.ReadFile(filepath.Join(dir, "out.csv"))
		require.NoError(t, err)
		require.Equal(t, `id,name,count,score,open,day,seen,at,tokyo,more
1,,7,,true,3 Jan 2026,1767445509001,2026-07-01 10:00,2026-07-01 10:00,none
2,"a
b",7,1.5,false,31 Dec 2025,0,2026-01-01 10:00,2026-01-01 10:00,none
`, string(out))
		var said []string
		skipped, err := engine.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID})
		require.NoError(t, err)
		for _, item := range skipped {
			said = append(said, strings.ReplaceAll(item.Error, dir+"/", ""))
		}
		require.Equal(t, []string{
			`in.csv:5: character 12: field day: "3 Janvier 2026" is not a date (expected d MMM yyyy)`,
			`in.csv:6: character 25: field at: "2026-03-29 02:30" is not a timestamp (2026-03-29 02:30:00 does not exist in Europe/Berlin: the clock skips it)`,
			`in.json:3, element 3: field id: "twelve" is not an int`,
		}, said)
	})
}
