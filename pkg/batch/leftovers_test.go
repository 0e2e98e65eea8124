package batch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// leftText is a job with a first step that fails with two rows in its file, and a second step that
// fails until the table exists.
const leftText = `
job: left
flow:
- step: out
  chunk: {size: 2, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {csv: out.csv}}
  next: {FAILED: other, COMPLETED: end}
- step: other
  tasklet: {sql: "insert into needed values (1)"}
`

type left struct {
	t    *testing.T
	app  *batch.App
	file string
	out  string
	exec *batch.Execution
}

// eachLeft runs f after the job has failed on each database (rule C15b).
func eachLeft(t *testing.T, f func(l *left)) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		l := &left{t: t, app: newApp(t, settingsFor(t, url)), file: jobFile(t, leftText)}
		dir := filepath.Dir(l.file)
		l.out = filepath.Join(dir, "out.csv")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n2\n3\nx\n"), 0o600))
		l.run(core.StatusFailed)
		require.Len(t, l.parts(), 1)
		f(l)
	})
}

func (l *left) run(want core.Status) {
	l.t.Helper()
	var err error
	l.exec, err = l.app.Run(context.Background(), batch.RunRequest{File: l.file})
	require.NoError(l.t, err)
	require.Equal(l.t, want, l.exec.Status, l.exec.Error)
}

func (l *left) parts() []string { return itemkit.Parts(l.t, l.out) }

func TestTheFilesOfAStepThatFailedGoWithAPurge(t *testing.T) {
	eachLeft(t, func(l *left) {
		part := l.parts()
		l.run(core.StatusFailed)
		require.Equal(l.t, part, l.parts(), "the restart went on in the same file")
		filter := batch.PurgeRequest{EndedBefore: time.Now().Add(time.Hour), Statuses: []core.Status{core.StatusFailed}, DryRun: true}
		_, err := l.app.Purge(context.Background(), filter)
		require.NoError(l.t, err)
		require.Equal(l.t, part, l.parts())
		filter.DryRun = false
		_, err = l.app.Purge(context.Background(), filter)
		require.NoError(l.t, err)
		require.Empty(l.t, l.parts())
	})
}

func TestTheFilesOfAStepThatFailedGoWithTheirInstance(t *testing.T) {
	eachLeft(t, func(l *left) {
		_, err := l.app.Purge(context.Background(), batch.PurgeRequest{Instance: l.exec.InstanceID})
		require.NoError(l.t, err)
		require.Empty(l.t, l.parts())
	})
}

func TestTheFilesOfAStepThatFailedGoWithTheSuccessOfTheInstance(t *testing.T) {
	eachLeft(t, func(l *left) {
		mine := l.out + ".part.mine"
		require.NoError(l.t, os.WriteFile(mine, nil, 0o600))
		text := `
job: left
flow:
- step: out
  chunk: {size: 2, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {csv: out.csv}}
  next: {FAILED: other, COMPLETED: end}
- step: other
  tasklet: {sql: "select 1"}
`
		require.NoError(l.t, os.WriteFile(l.file, []byte(text), 0o600))
		l.run(core.StatusCompleted)
		require.Equal(l.t, []string{mine}, l.parts(), "no other file is touched")
	})
}

// Rule C15w.
func TestTheFilesOfPartsThatWereNotPublishedGoWithTheirInstance(t *testing.T) {
	t.Parallel()
	const text = `
job: left
flow:
- step: out
  partition: {by: {files: "in/*.csv"}}
  chunk: {size: 2, reader: {csv: {path: "${part.path}", item: {id: int}}}, writer: {csv: {path: out.csv, together: true}}}
  next: {FAILED: other, COMPLETED: end}
- step: other
  tasklet: {sql: "insert into needed values (1)"}
`
	testdb.Each(t, func(t *testing.T, url string) {
		l := &left{t: t, app: newApp(t, settingsFor(t, url)), file: jobFile(t, text)}
		dir := filepath.Dir(l.file)
		l.out = filepath.Join(dir, "out.csv")
		require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "in/a.csv"), []byte("id\n1\n2\n3\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "in/b.csv"), []byte("id\n1\n2\n3\nx\n"), 0o600))
		l.run(core.StatusFailed)
		require.Len(t, l.parts(), 2)
		_, err := l.app.Purge(context.Background(), batch.PurgeRequest{Instance: l.exec.InstanceID})
		require.NoError(t, err)
		require.Empty(t, l.parts())

		l.run(core.StatusFailed)
		require.Len(t, l.parts(), 2)
		require.NoError(t, os.WriteFile(l.file, []byte(strings.Replace(text, "insert into needed values (1)", "select 1", 1)), 0o600))
		l.run(core.StatusCompleted)
		require.Empty(t, l.parts(), "it took the way round the step")
		require.NoFileExists(t, l.out)
	})
}
