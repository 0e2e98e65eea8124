package s3_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testdb"
	filetask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/files"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/waitfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type tasks struct {
	*testing.T
	ctx    context.Context
	g      *running
	bucket string
}

func newTasks(t *testing.T) *tasks {
	t.Helper()
	g, bucket := bucket(t)
	return &tasks{t, g.in(t), g, bucket}
}

func (t *tasks) url(key string) string { return "s3://" + t.bucket + "/" + key }

func (t *tasks) run(of []registry.Component, settings testcomponent.Settings) (map[string]any, error) {
	t.Helper()
	made, err := testcomponent.Make[core.Tasklet](of, registry.KindTasklet, settings, registry.BuildContext{})
	require.NoError(t, err)
	c := &core.StepContribution{Context: core.NewExecutionContext(), Save: func(context.Context) error { return nil }}
	err = made.Execute(t.ctx, c)
	return c.Out, err
}

func (t *tasks) files(settings testcomponent.Settings) map[string]any {
	t.Helper()
	out, err := t.run(filetask.Components(), settings)
	require.NoError(t, err)
	return out
}

func (t *tasks) content(key string) string { return t.g.get(t.T, t.bucket, key) }

func TestFilesGoFromAnyPlaceToAnyPlace(t *testing.T) {
	t.Parallel()
	s := newTasks(t)
	dir := t.TempDir()
	long := strings.Repeat("0123456789", 2<<20) // of more than one piece
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.csv"), []byte("one\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.csv"), []byte(long), 0o600))
	out := s.files(testcomponent.Settings{"copy": dir + "/*.csv", "to": s.url("in")})
	require.EqualValues(t, 2, out["files"])
	s.g.clean(t, s.bucket, "in/a.csv", "in/b.csv")
	require.True(t, s.content("in/b.csv") == long)

	out = s.files(testcomponent.Settings{"gzip": s.url("in/b.csv")})
	require.Equal(t, s.url("in/b.csv.gz"), out["path"])
	s.files(testcomponent.Settings{"move": s.url("in/*"), "to": s.url("done/")})
	s.g.clean(t, s.bucket, "done/a.csv", "done/b.csv.gz")
	s.files(testcomponent.Settings{"gunzip": s.url("done/b.csv.gz"), "as": filepath.Join(dir, "c.csv")})
	text, err := os.ReadFile(filepath.Join(dir, "c.csv"))
	require.NoError(t, err)
	require.True(t, string(text) == long)

	s.g.put(t, s.bucket, "done/b.csv", "two\n")
	out = s.files(testcomponent.Settings{"checksum": s.url("done/*.csv"), "as": s.url("done/sums")})
	require.EqualValues(t, 2, out["files"])
	require.Contains(t, s.content("done/sums"), "  a.csv\n")
	s.files(testcomponent.Settings{"delete": s.url("done/*")})
	require.Empty(t, s.g.keys(t, s.bucket, ""))
}

func TestAFileInAStoreIsReplacedOnRequestOnly(t *testing.T) {
	t.Parallel()
	s := newTasks(t)
	for key, text := range map[string]string{"in/a.csv": "new\n", "out/a.csv": "old\n", "in/b.csv": "b\n"} {
		s.g.put(t, s.bucket, key, text)
	}
	move := testcomponent.Settings{"move": s.url("in/*.csv"), "to": s.url("out")}
	_, err := s.run(filetask.Components(), move)
	require.ErrorContains(t, err, s.url("out/a.csv")+" exists already, with other content")
	s.g.clean(t, s.bucket, "in/a.csv", "in/b.csv", "out/a.csv")
	s.files(testcomponent.Settings{"move": s.url("in/*.csv"), "to": s.url("out"), "overwrite": true})
	s.g.clean(t, s.bucket, "out/a.csv", "out/b.csv")
	require.Equal(t, "new\n", s.content("out/a.csv"))
	_, err = s.run(filetask.Components(), move)
	require.ErrorContains(t, err, "no file matches "+s.url("in/*.csv"))
	_, err = s.run(filetask.Components(), testcomponent.Settings{"copy": s.url("out/a.csv"), "to": s.url("out")})
	require.ErrorContains(t, err, "would become itself")
}

func TestAStepWaitsForAnObject(t *testing.T) {
	t.Parallel()
	s := newTasks(t)
	wait := testcomponent.Settings{"path": s.url("in/*.csv"), "stable": time.Duration(0), "poll": 10 * time.Millisecond, "timeout": time.Second / 5}
	_, err := s.run(waitfile.Components(), wait)
	require.ErrorContains(t, err, "there is no file "+s.url("in/*.csv"))
	s.g.put(t, s.bucket, "in/a.csv", "one\n")
	out, err := s.run(waitfile.Components(), wait)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"found": true, "files": int64(1), "bytes": int64(4), "path": s.url("in/a.csv")}, out)
}

const moveJob = `job: move
flow:
- step: move
  tasklet: {files: {move: 's3://%[1]s/in/*.csv', to: 's3://%[1]s/out'}}
`

// Rule OB4.
func TestAStepThatMovesObjectsIsKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	const many = 30
	begin := func() *site {
		s := newSite(t, 0, testdb.EmptySQLite(t))
		s.job = fmt.Sprintf(moveJob, s.bucket)
		for i := range many {
			s.gateway.put(t, s.bucket, fmt.Sprintf("in/%d.csv", i), strings.Repeat(fmt.Sprint(i), 50_000))
		}
		return s
	}
	whole := begin()
	began := time.Now()
	whole.end("")
	took := time.Since(began)
	for range times("KILLS", 3) {
		s := begin()
		cmd := s.command("")
		require.NoError(t, cmd.Start())
		time.Sleep(rand.N(took)) //nolint:gosec // any moment
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait() //nolint:errcheck // it was killed
		s.end("")
		keys := make([]string, 0, many+1)
		for i := range many {
			keys = append(keys, fmt.Sprintf("out/%d.csv", i))
			require.True(t, s.gateway.get(t, s.bucket, keys[i]) == strings.Repeat(fmt.Sprint(i), 50_000), keys[i])
		}
		keys = append(keys, "in.csv")
		slices.Sort(keys)
		s.gateway.clean(t, s.bucket, keys...)
		s.gateway.clear(t, s.bucket)
	}
}
