package jobfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTodayIsTheDayOfTheLaunchInTheZoneOfTheJob(t *testing.T) {
	t.Parallel()
	const text = "job: x\ntimezone: %s\nparameters: {day: {type: date, default: \"${today() - 1}\"}, at: {type: timestamp, default: \"${now()}\"}}\nflow: [{step: a, tasklet: idle}]\n"
	for zone, want := range map[string]string{"UTC": "2026-10-24", "Europe/Berlin": "2026-10-25", "America/New_York": "2026-10-24"} {
		file := parse(t, "job.yaml", fmt.Sprintf(text, zone))
		late := time.Date(2026, 10, 25, 23, 30, 0, 0, time.UTC)
		specs := jobfile.ParametersAt(file, late)
		require.Equal(t, want, specs[0].Default.(core.Date).String(), zone)
		require.Equal(t, late, specs[1].Default)
		require.Equal(t, "2026-12-31", jobfile.ParametersAt(file, time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC))[0].Default.(core.Date).String())
	}
}

// Rule D5.
func TestATimestampOfAParameterIsATimeOfTheJob(t *testing.T) {
	t.Parallel()
	file := parse(t, "job.yaml", `
job: x
timezone: Europe/Berlin
parameters:
  at: {type: timestamp, default: "2026-07-01 08:00:00", min: "2026-07-01 08:00:00", enum: ["2026-07-01 08:00:00", "2026-07-01T09:00:00Z"]}
  day: {type: timestamp, default: "${today()}T08:00:00", required: false}
schedule: {cron: 30 2 * * *, timezone: America/New_York, parameters: {at: "2026-07-01 08:00:00", day: "${schedule.date}T08:00:00"}}
flow: [{step: a, tasklet: idle}]
`)
	want := time.Date(2026, 7, 1, 6, 0, 0, 0, time.UTC)
	specs := jobfile.ParametersAt(file, time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	for _, s := range specs {
		require.Equal(t, want, s.Default, s.Name)
		require.Equal(t, want.Add(2*time.Hour), s.FormerDefault, s.Name)
	}
	require.Equal(t, want, specs[0].Min)
	require.Equal(t, []string{"2026-07-01T06:00:00Z", "2026-07-01T09:00:00Z"}, specs[0].Enum)
	params, err := job.ValidateParameters(specs, map[string]string{"at": "2026-07-01 08:00:00", "day": "2026-07-01 08:00:00"})
	require.NoError(t, err)
	former, err := job.ValidateParameters(specs, map[string]string{"at": "2026-07-01T09:00:00Z"})
	require.NoError(t, err)
	require.NotEqual(t, former.Key(), former.FormerKey(), "the default of day")
	require.NotEmpty(t, params.FormerKey())
	same, err := job.ValidateParameters(specs, map[string]string{"at": params.All()[0].Text(), "day": params.All()[1].Text()})
	require.NoError(t, err)
	require.Equal(t, params.Key(), same.Key())
	require.Empty(t, same.FormerKey(), "a text with an offset was never read otherwise")
}

func TestTheTimeOfAJobIsTheSameInAllAttempts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, "job.yaml", "job: x\nflow: [{step: a, tasklet: {note: \"${job.time}\"}}]\n")
		s.fail = os.ErrDeadlineExceeded
		first, err := s.launch(t, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, first.Status)
		s.fail = nil
		second, err := s.launch(t, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, second.Status, second.Error)
		require.Len(t, s.notes, 2)
		require.Equal(t, s.notes[0].Text, s.notes[1].Text)
		require.Equal(t, first.Time, second.Time)
		require.False(t, second.CreatedAt.Before(second.Time))
		at, err := core.ParseParameter(core.TypeTimestamp, s.notes[1].Text)
		require.NoError(t, err)
		require.Equal(t, second.Time.UTC(), at)
	})
}

func TestAJobThatRunsIntoItsTimeoutFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, reg := testengine.New(t, testdb.SQLite(t)), shipped(t)
	file, err := jobfile.Parse(filepath.Join(dir, "job.yaml"), []byte(`
job: x
timeout: 200ms
flow:
- {step: wait, tasklet: {shell: [sleep, "600"]}, next: {FAILED: more}}
- {step: more, tasklet: {shell: [touch, more]}}
finally:
- {step: last, tasklet: {shell: {command: [sh, -c, "echo $0 > last", "${job.error}"]}}}
`), reg)
	require.NoError(t, err)
	compiled, err := file.Compile(jobfile.Deps{Provider: e.Provider, Registry: reg})
	require.NoError(t, err)
	params, err := job.ValidateParameters(file.Parameters(), nil)
	require.NoError(t, err)
	exec, err := e.Launcher.Run(t.Context(), compiled, params, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, "job x ran into its timeout of 200ms", exec.Error)
	require.NoFileExists(t, filepath.Join(dir, "more"))
	text, err := os.ReadFile(filepath.Join(dir, "last"))
	require.NoError(t, err)
	require.Equal(t, exec.Error+"\n", string(text))
}
