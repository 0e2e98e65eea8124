package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

var errQuota = errors.New("quota")

func quota() fx.Option {
	return batch.Matchers(batch.Matcher{Name: "quota", Parent: "transient", Match: func(err error) bool { return errors.Is(err, errQuota) }})
}

func TestAnApplicationsMatchersStandBesideTheShippedOnes(t *testing.T) {
	t.Parallel()
	reg, err := assembly.NewRegistry(quota())
	require.NoError(t, err)
	require.Equal(t, "quota", reg.Matchers().Class(fmt.Errorf("call: %w", errQuota)))
	rules, err := reg.Matchers().RetryRules([]string{"transient"}, nil)
	require.NoError(t, err)
	require.True(t, rules.Match(errQuota))
}

func TestWhatIsRegisteredTwiceIsRefusedTogether(t *testing.T) {
	t.Parallel()
	again := batch.Matchers(batch.Matcher{Name: "deadlock"})
	_, err := assembly.NewRegistry(quota(), quota(), again,
		batch.Listener("watch", newWatch), batch.Listener("watch", newWatch),
		batch.Matchers(batch.Matcher{Name: "lost", Parent: "nowhere"}))
	require.ErrorContains(t, err, `listener "watch" is registered twice`)
	require.ErrorContains(t, err, `error class "quota" is registered twice`)
	require.ErrorContains(t, err, `error class "deadlock" is registered twice`)
	require.ErrorContains(t, err, `error class "lost": its parent class "nowhere" does not exist`)
}

type watchConfig struct {
	Note string `key:"note" main:"true" doc:"A word."`
}

type notes struct{ list []string }

type watch struct {
	note string
	*notes
}

func newWatch(c watchConfig, n *notes) *watch { return &watch{c.Note, n} }

func (w *watch) OnSkipProcess(_ context.Context, item any, err error) error {
	w.list = append(w.list, fmt.Sprintf("%s: %v: %v", w.note, item, err))
	return nil
}

func (w *watch) BeforeRetry(_ context.Context, phase core.Phase, n int, _ error) error {
	w.list = append(w.list, fmt.Sprintf("%s: retry %d of %s", w.note, n, phase))
	return nil
}

type deaf struct{}

func TestAListenerMustListenToSomething(t *testing.T) {
	t.Parallel()
	_, err := assembly.NewRegistry(batch.Listener("deaf", func() *deaf { return &deaf{} }))
	require.ErrorContains(t, err, `listener "deaf": the constructor returns *batch_test.deaf, which implements no listener interface`)
	_, err = assembly.NewRegistry(batch.Reader[int]("none", func() *deaf { return &deaf{} }))
	require.ErrorContains(t, err, `reader "none": the constructor returns *batch_test.deaf, which is not a item.ItemReader[int]`)
}

type numbers struct{ n int }

func (r *numbers) Read(context.Context) (int, error) {
	if r.n == 4 {
		return 0, io.EOF
	}
	r.n++
	return r.n, nil
}

// caller fails for item 2 once with the quota, and for item 3 always.
type caller struct{ calls map[int]int }

func (c *caller) Process(_ context.Context, n int) (int, error) {
	c.calls[n]++
	switch {
	case n == 2 && c.calls[n] == 1:
		return 0, fmt.Errorf("call: %w", errQuota)
	case n == 3:
		return 0, exception.Skippable("call", errors.New("no such customer"))
	}
	return n, nil
}

type sum struct{ total *int }

func (s sum) Write(_ context.Context, items []int) error {
	for _, n := range items {
		*s.total += n
	}
	return nil
}

func runFile(t *testing.T, url, text string, opts ...fx.Option) *batch.Execution {
	t.Helper()
	s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url}})
	require.NoError(t, err)
	s.AutoMigrate = settings.MigrateAlways
	app, err := batch.New(t.Context(), s, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
	require.NoError(t, err)
	return exec
}

func calls(total *int) fx.Option {
	return fx.Options(
		batch.Reader[int]("numbers", func() *numbers { return &numbers{} }),
		batch.Processor[int, int]("caller", func() *caller { return &caller{calls: map[int]int{}} }),
		batch.Writer[int]("sum", func() sum { return sum{total} }),
	)
}

func TestAListenerAndAMatcherOfTheApplicationTakePartInAJob(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		told, total := &notes{}, 0
		exec := runFile(t, url, `
job: calls
flow:
- step: call
  chunk:
    reader: numbers
    processor: caller
    writer: sum
    retry: {limit: 2, errors: [quota], backoff: {initial: 1ms}}
    skip: 1
  listeners: {watch: told}
`, quota(), fx.Supply(told), calls(&total), batch.Listener("watch", newWatch))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, 1+2+4, total)
		require.Equal(t, []string{"told: retry 1 of process", "told: 3: process: call: no such customer"}, told.list)
	})
}

func TestAMatcherThatPanicsFailsTheStepAndNotTheProcess(t *testing.T) {
	t.Parallel()
	total := 0
	exec := runFile(t, testdb.SQLite(t), `
job: calls
flow:
- step: call
  chunk: {reader: numbers, processor: caller, writer: sum, retry: {limit: 2, errors: [bomb]}}
`, calls(&total), batch.Matchers(batch.Matcher{Name: "bomb", Match: func(error) bool { panic("lit") }}))
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "panic: lit")
	require.Zero(t, total)
}

func TestAJobFileNamesTheMigrationsThatTheApplicationCarries(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"1_birds.up.sql": {Data: []byte("create table birds(name text)")}, "1_birds.down.sql": {Data: []byte("drop table birds")}}
	app, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), batch.Migrations(migration.Source{Name: "birds", FS: files}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte("job: m\nflow:\n- step: a\n  tasklet: {migration: {source: birds}}\n"), 0o600))
	exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, "%+v", exec)
}
