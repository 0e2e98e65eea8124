package jobfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const closing = `
job: closing
include: common.yaml
parameters:
  date: {type: date, default: "${business_day(date('2026-04-05'), -1, 'TARGET')}"}
flow:
- decide: open
  choose:
  - {when: "is_business_day(params.date, 'plant')", next: load}
  - next: {end: {exit: HOLIDAY}}
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, on: date}}}
    processor: {map: {due: "business_day(item.on, 2, 'plant')"}}
    writer: {table: {name: due, create: true}}
`

func TestBusinessDaysAreKnownToDecisionsDefaultsAndRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("in.csv", "id,on\n1,2026-12-23\n2,2026-12-30\n")
	write("common.yaml", "calendars:\n  plant: {base: TARGET, holidays: [2026-12-24, 2026-12-31]}\n")
	write("job.yaml", closing)
	engine := testengine.New(t, testdb.SQLite(t))
	file, err := jobfile.Load(filepath.Join(dir, "job.yaml"), shipped(t))
	require.NoError(t, err)
	compiled, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: shipped(t)})
	require.NoError(t, err)
	for date, exit := range map[string]string{"": "COMPLETED", "2026-12-24": "HOLIDAY"} {
		given := map[string]string{}
		if date != "" {
			given["date"] = date
		}
		params, err := job.ValidateParameters(file.Parameters(), given)
		require.NoError(t, err)
		exec, err := engine.Launcher.Run(t.Context(), compiled, params, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, exit, exec.ExitCode)
		if date == "" {
			require.Contains(t, fmt.Sprint(params), fmt.Sprint(int(row.NewDate(2026, 4, 2))))
		}
	}
	require.Equal(t, []int64{1}, engine.Ints("select id from due where due = '2026-12-29'"))
	require.Equal(t, []int64{2}, engine.Ints("select id from due where due = '2027-01-05'"))
}
