//test:plain

package waitfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/waitfile"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func wait(t *testing.T, c waitfile.Config, stop <-chan struct{}) (*core.StepContribution, error) {
	t.Helper()
	task, err := waitfile.New(c)
	require.NoError(t, err)
	contribution := &core.StepContribution{Stop: stop}
	return contribution, task.Execute(t.Context(), contribution)
}

func TestAFileIsFoundWhenNobodyHasWrittenToItForATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			for i := range 5 { // written at 10 s to 18 s
				require.NoError(t, os.WriteFile(filepath.Join(dir, "a.csv"), make([]byte, i+1), 0o600))
				time.Sleep(2 * time.Second)
			}
		}()
		c, err := wait(t, waitfile.Config{Path: dir + "/*.csv", Stable: 5 * time.Second, Poll: time.Second, Timeout: time.Hour}, nil)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"found": true, "files": int64(1), "bytes": int64(5), "path": filepath.Join(dir, "a.csv")}, c.Out)
		took := time.Since(began)
		require.True(t, took >= 23*time.Second && took <= 25*time.Second, took)
	})
}

func TestWhenTheTimeIsOverItSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/folder.csv", 0o700))
	synctest.Test(t, func(t *testing.T) {
		cfg := waitfile.Config{Path: dir + "/*.csv", Timeout: time.Minute}
		_, err := wait(t, cfg, nil)
		require.ErrorContains(t, err, "there is no file "+dir+"/*.csv after 1m0s: a restart waits again")
		require.NoError(t, os.WriteFile(dir+"/a.csv", nil, 0o600))
		cfg.Count = 2
		_, err = wait(t, cfg, nil)
		require.ErrorContains(t, err, "found 1 of the 2 files")
		cfg.Count, cfg.Stable, cfg.Timeout = 1, 20*time.Second, 30*time.Second
		go func() {
			for i := range 40 {
				require.NoError(t, os.WriteFile(dir+"/a.csv", make([]byte, i), 0o600))
				time.Sleep(time.Second)
			}
		}()
		_, err = wait(t, cfg, nil)
		require.ErrorContains(t, err, "is still being written")
		cfg.Missing = "ignore"
		cfg.Path = dir + "/none"
		c, err := wait(t, cfg, nil)
		require.NoError(t, err)
		require.Equal(t, false, c.Out["found"])
		time.Sleep(time.Minute)
	})
}

func TestAStopAndTheEndOfTheContextAreHeardAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began, stop := time.Now(), make(chan struct{})
		time.AfterFunc(3*time.Second, func() { close(stop) })
		_, err := wait(t, waitfile.Config{Path: dir + "/a", Poll: time.Hour}, stop)
		require.ErrorIs(t, err, core.ErrStopped)
		require.Equal(t, 3*time.Second, time.Since(began))
		task, err := waitfile.New(waitfile.Config{Path: dir + "/a"})
		require.NoError(t, err)
		lost := errors.New("the lease is lost")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, lost)
		defer cancel()
		require.ErrorIs(t, task.Execute(ctx, &core.StepContribution{}), lost)
	})
}

// Rule TL5.
func TestARestartWaitsAgain(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	file := e.File("job.yaml", `job: wait
flow:
- step: file
  tasklet: {wait_file: {path: in/a.csv, stable: 0s, timeout: 20ms, poll: 1ms}}
- step: load
  when: steps.file.out.found and steps.file.out.bytes > 0
  tasklet: {sql: create table loaded (path text)}
`)
	e.Job(file).Failed("there is no file ")
	e.File("in/a.csv", "id\n")
	e.Job(file).Completed()
	e.HasRows("select count(*) from loaded", "0")
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]waitfile.Config{
		"path": {Path: "a["}, "count": {Path: "a", Count: -1}, "poll": {Path: "a", Poll: -1},
		"stable": {Path: "a", Stable: time.Hour, Timeout: time.Minute}, "missing": {Path: "a", Missing: "no"},
	} {
		var at *registry.ConfigError
		require.ErrorAs(t, c.Validate(), &at)
		require.Equal(t, key, at.Key)
	}
}
