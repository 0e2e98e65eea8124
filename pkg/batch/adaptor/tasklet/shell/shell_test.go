package shell

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(ctx context.Context, t *testing.T, c config) (*core.StepContribution, error) {
	t.Helper()
	task, err := newTasklet(c)
	require.NoError(t, err)
	contribution := &core.StepContribution{}
	return contribution, task.Execute(ctx, contribution)
}

func TestArgumentsAndValuesAreNotReadByAShell(t *testing.T) {
	t.Parallel()
	c, err := run(context.Background(), t, config{Command: []string{"printf", "%s|%s", "$(id); `x`", "a b"}})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"exit_code": int64(0), "stdout": "$(id); `x`|a b"}, c.Out)

	c, err = run(context.Background(), t, config{Script: `echo "$VALUE"; pwd`, Env: map[string]string{"VALUE": `"; exit 3; $(id)`}, Dir: "/"})
	require.NoError(t, err)
	require.Equal(t, "\"; exit 3; $(id)\n/", c.Out["stdout"])
}

func TestAFailureHasItsCodeAndTheEndOfStderr(t *testing.T) {
	t.Parallel()
	c, err := run(context.Background(), t, config{Script: `i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; i=$((i+1)); done; echo out; exit 7`})
	var exit *exitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.Code)
	require.True(t, strings.HasSuffix(err.Error(), "line 1999"), err.Error())
	require.Less(t, len(err.Error()), 3000)
	require.Equal(t, map[string]any{"exit_code": int64(7), "stdout": "out"}, c.Out)
}

func TestLongOutputKeepsItsEnd(t *testing.T) {
	t.Parallel()
	c, err := run(context.Background(), t, config{Script: `i=0; while [ $i -lt 5000 ]; do echo "ä $i"; i=$((i+1)); done`})
	require.NoError(t, err)
	out := c.Out["stdout"].(string)
	require.LessOrEqual(t, len(out), 8<<10+3)
	require.True(t, strings.HasPrefix(out, "…") && strings.HasSuffix(out, "ä 4999"))
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	_, err := run(context.Background(), t, config{Command: []string{"/nowhere/to/be/found"}})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

func readLine(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	line, err := bufio.NewReader(f).ReadString('\n')
	require.NoError(t, errors.Join(err, f.Close()))
	return strings.TrimSpace(line)
}

func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil {
			return strings.Contains(string(stat), ") Z ")
		}
		return errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
	}, 10*time.Second, time.Millisecond)
}

func TestTheEndOfTheContextEndsTheProcessAndAllItStarted(t *testing.T) {
	t.Parallel()
	stop := errors.New("the operator said so")
	for _, c := range []struct{ name, trap, want string }{
		{"politely", `trap 'echo bye >&2; exit 5' TERM;`, "bye"},
		{"by force", `trap '' TERM;`, "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ready := pipe(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			ended := make(chan error, 1)
			contribution := &core.StepContribution{}
			task, err := newTasklet(config{
				Script: c.trap + ` (trap '' TERM; exec sleep 1000) & echo $! > "$READY"; while :; do wait; done`,
				Env:    map[string]string{"READY": ready}, Grace: 200 * time.Millisecond,
			})
			require.NoError(t, err)
			go func() { ended <- task.Execute(ctx, contribution) }()
			child := readLine(t, ready)
			cancel(stop)
			err = <-ended
			require.ErrorIs(t, err, stop)
			require.ErrorContains(t, err, c.want)
			gone(t, child)
		})
	}
}

func TestARequestToStopEndsTheProcessAsTheContextDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, trap, want string }{
		{"politely", `trap 'echo bye >&2; exit 5' TERM;`, "bye"},
		{"with success", `trap 'exit 0' TERM;`, "stopped"},
		{"by force", `trap '' TERM;`, "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ready := pipe(t)
			task, err := newTasklet(config{
				Script: c.trap + ` (trap '' TERM; exec sleep 1000) & echo $! > "$READY"; while :; do wait; done`,
				Env:    map[string]string{"READY": ready}, Grace: 200 * time.Millisecond,
			})
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- task.Execute(context.Background(), &core.StepContribution{}) }()
			child := readLine(t, ready)
			require.NoError(t, task.(core.Stoppable).StopRequested(context.Background()))
			require.NoError(t, task.(core.Stoppable).StopRequested(context.Background()))
			err = <-ended
			require.ErrorIs(t, err, core.ErrStopped)
			require.ErrorContains(t, err, c.want)
			gone(t, child)
		})
	}
}

func TestAStopBeforeTheStartStartsNothing(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "ran")
	task, err := newTasklet(config{Command: []string{"touch", mark}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(core.ErrStopped)
	require.ErrorIs(t, task.Execute(ctx, &core.StepContribution{}), core.ErrStopped)
	require.NoFileExists(t, mark)
}

func TestAProcessLeftBehindWithTheOutputOpenIsAFailureAndIsEnded(t *testing.T) {
	t.Parallel()
	c, err := run(context.Background(), t, config{Script: `sleep 1000 & echo $!`, Grace: 50 * time.Millisecond})
	require.ErrorContains(t, err, "a process that it started holds")
	gone(t, c.Out["stdout"].(string))
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config config
		key    string
	}{
		{config{}, "command"},
		{config{Command: []string{"a"}, Script: "b"}, "script"},
		{config{Command: []string{"a"}, Grace: -1}, "grace"},
		{config{Command: []string{"a"}, Env: map[string]string{"A=B": ""}}, "env.A=B"},
	} {
		err := c.config.Validate()
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at)
		require.Equal(t, c.key, at.Key)
	}
}
