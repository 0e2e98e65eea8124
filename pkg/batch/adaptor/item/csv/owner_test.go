package csv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type line struct{ Text string }

type lines struct {
	text string
	left int
}

func (r *lines) Read(context.Context) (line, error) {
	if r.left--; r.left < 0 {
		return line{}, io.EOF
	}
	return line{r.text}, nil
}

// barrier is a writer with a Finish that waits, like a process frozen between the guard and the rename of the
// file writer that follows.
type barrier struct {
	reached chan struct{} // closed by the first Finish
	open    chan struct{}
	closed  chan struct{} // closed by the Close of a barrier that waited
	waited  bool
}

func newBarrier() *barrier {
	return &barrier{reached: make(chan struct{}), open: make(chan struct{}), closed: make(chan struct{})}
}

func (b *barrier) Write(context.Context, []line) error { return nil }

func (b *barrier) Finish(context.Context) error {
	select {
	case <-b.reached:
		return nil
	default:
	}
	b.waited = true
	close(b.reached)
	<-b.open
	return nil
}

func (b *barrier) Close(context.Context) error {
	if b.waited {
		close(b.closed)
	}
	return nil
}

func export(t *testing.T, e *testengine.Engine, path, text string, n int, writers ...item.Writer) *model.Job {
	t.Helper()
	s, err := chunk.New(chunk.Config{
		Name: "export", Size: 2, Database: e.Database,
		Assemble: func(_ context.Context, run *model.StepRun) (chunk.Parts, error) {
			out, err := newWriter(writerConfig{Path: path}, registry.BuildContext{In: item.TypeOf[line]("line"), Attempt: chunk.AttemptOf(run)})
			return chunk.Parts{Reader: item.EraseReader(&lines{text: text, left: n}), Writers: append(writers[:len(writers):len(writers)], out)}, err
		},
	})
	require.NoError(t, err)
	return testengine.Job(text, &model.StepElement{Step: s})
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// An attempt is frozen between the guard and the rename.
func TestAFrozenAttemptThatWakesPublishesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		path := filepath.Join(t.TempDir(), "out.csv")
		e := testengine.New(t, url, func(c *job.Config) {
			executor := c.Executor.(*step.SimpleStepExecutor)
			executor.StopTimeout = time.Millisecond
		})
		b := newBarrier()
		first := export(t, e, path, "first", 5, item.EraseWriter(b))
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-b.reached
			cancel()
		}()
		exec, err := e.Launcher.Run(ctx, first, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "did not return in time")
		require.NoFileExists(t, path)
		require.Len(t, itemkit.Parts(t, path), 1)

		exec, err = e.Launcher.Run(context.Background(), first, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, "first\nfirst\nfirst\nfirst\nfirst\n", content(t, path))
		require.Empty(t, itemkit.Parts(t, path), "the name is the fence")

		exec, err = e.Launcher.Run(context.Background(), export(t, e, path, "second", 1), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

		close(b.open)
		<-b.closed
		require.Equal(t, "second\n", content(t, path))
	})
}

func TestAFrozenAttemptThatWakesPublishesNothingBesideAnotherPathEither(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, anew := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, "out.csv")
			e := testengine.New(t, url, func(c *job.Config) { c.Executor.(*step.SimpleStepExecutor).StopTimeout = time.Millisecond })
			b := newBarrier()
			name := fmt.Sprint("first", anew)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				<-b.reached
				cancel()
			}()
			_, err := e.Launcher.Run(ctx, export(t, e, path, name, 3, item.EraseWriter(b)), core.Parameters{}, nil)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte("of another instance\n"), 0o600))

			moved := filepath.Join(dir, "moved.csv")
			exec, err := e.Launcher.With(job.Options{FromStart: anew}).Run(context.Background(), export(t, e, moved, name, 3, item.EraseWriter(open())), core.Parameters{}, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Equal(t, strings.Repeat(name+"\n", 3), content(t, moved))
			close(b.open)
			<-b.closed
			require.Equal(t, "of another instance\n", content(t, path))
			require.Empty(t, itemkit.Parts(t, path))
		}
	})
}

func TestARestartOfARestartTakesTheFileFromBoth(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		path := filepath.Join(t.TempDir(), "out.csv")
		e := testengine.New(t, url, func(c *job.Config) {
			c.Executor.(*step.SimpleStepExecutor).StopTimeout = time.Millisecond
		})
		var barriers []*barrier
		for range 2 {
			b := newBarrier()
			barriers = append(barriers, b)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				<-b.reached
				cancel()
			}()
			exec, err := e.Launcher.Run(ctx, export(t, e, path, "first", 5, item.EraseWriter(b)), core.Parameters{}, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusFailed, exec.Status)
		}
		require.Len(t, itemkit.Parts(t, path), 1, "the second has removed the file of the first")
		exec, err := e.Launcher.Run(context.Background(), export(t, e, path, "first", 5, item.EraseWriter(open())), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.NoError(t, os.WriteFile(path, []byte("changed since\n"), 0o600))
		for _, b := range barriers {
			close(b.open)
			<-b.closed
		}
		require.Equal(t, "changed since\n", content(t, path))
		require.Empty(t, itemkit.Parts(t, path))
	})
}

func TestARunFromTheStartRemovesTheFileOfTheAttemptBefore(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		path := filepath.Join(t.TempDir(), "out.csv")
		e := testengine.New(t, url)
		failing := errors.New("it cannot finish")
		for range 2 {
			exec, err := e.Launcher.With(job.Options{FromStart: true}).Run(context.Background(), export(t, e, path, "x", 3, item.EraseWriter(unfinished{failing})), core.Parameters{}, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, exec.Error, failing.Error())
			require.Len(t, itemkit.Parts(t, path), 1)
		}
	})
}

type unfinished struct{ err error }

func (unfinished) Write(context.Context, []line) error { return nil }
func (u unfinished) Finish(context.Context) error      { return u.err }

// open is a barrier that never waits.
func open() *barrier {
	b := newBarrier()
	close(b.reached)
	return b
}

type full struct{ writes int }

func (f *full) Write(context.Context, []line) error {
	f.writes++
	return &os.PathError{Op: "write", Path: "out.csv", Err: syscall.ENOSPC}
}

type skipAll struct{}

func (skipAll) Admit(error, int64) (bool, error) { return true, nil }

func TestAFullDiskFailsTheStepUnderAPolicyThatSkipsAndRetriesEverything(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		w := &full{}
		s, err := chunk.New(chunk.Config{
			Name: "export", Size: 2, Database: e.Database, Skip: skipAll{}, Isolate: chunk.IsolateBisect,
			Retry: chunk.Retry{Limit: 5, Retryable: func(error) bool { return true }},
			Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
				return chunk.Parts{Reader: item.EraseReader(&lines{text: "x", left: 5}), Writers: []item.Writer{item.EraseWriter(w)}}, nil
			},
		})
		require.NoError(t, err)
		exec, err := e.Launcher.Run(context.Background(), testengine.Job("full", &model.StepElement{Step: s}), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "no space left on device")
		require.Equal(t, 1, w.writes)
		require.Equal(t, []int64{0}, e.Ints("select count(*) from surfin_skipped_item"))
	})
}
