package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

// The clients of the server: an operator, and those that watch.
const (
	consoleToken   = "operator-0123456789abcdef"
	watchingToken  = "watching-0123456789abcdef-"
	watchingPeople = 13
)

// console is a running surfin serve over the history of w8.
type console struct {
	*consoleHistory
	database string // its name in the tables
	address  string
	pid      int
}

// serveConsole is the command surfin serve, as cmd/surfin makes it.
func serveConsole(w Work) error {
	os.Args = []string{"surfin", "serve", "--jobs", w.Dir}
	cli.Main(slog.Module(), river.Module(), tickComponents())
	return nil
}

// startConsole starts this program as surfin serve, and returns when it listens.
func startConsole(h *consoleHistory, url string) (c *console, end func() error, err error) {
	w := h.work
	w.Serve = true
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd, err := withWork(exec.Command(self), w)
	if err != nil {
		return nil, nil, err
	}
	cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "SURFIN_API_LISTEN=127.0.0.1:0", "SURFIN_API_RATE=1000000", "SURFIN_API_OPERATOR_TOKENS_ANNA="+consoleToken)
	for n := range watchingPeople {
		cmd.Env = append(cmd.Env, fmt.Sprintf("SURFIN_API_VIEWER_TOKENS_WALL%d=%s%02d", n, watchingToken, n))
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		_ = cmd.Wait() //nolint:errcheck // it was told to end
		return nil
	}
	address, err := listensAt(said)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return &console{consoleHistory: h, address: address, pid: cmd.Process.Pid}, end, nil
}

// listensAt is the address in the log of a server. The rest of the log is not kept.
func listensAt(log io.Reader) (string, error) {
	const says = "the API is at http://"
	var before strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if _, after, found := strings.Cut(lines.Text(), says); found {
			address, _, _ := strings.Cut(after, "/")
			go func() { _, _ = io.Copy(io.Discard, log) }() //nolint:errcheck // until the server ends
			return address, nil
		}
		before.WriteString(lines.Text() + "\n")
	}
	return "", fmt.Errorf("surfin serve did not begin to listen:\n%s", before.String())
}

func (c *console) watchingToken(n int) string {
	return fmt.Sprintf("%s%02d", watchingToken, n%watchingPeople)
}

// ticks is a reader that has an item each hundredth of a second, and never ends.
type ticks struct{ n int64 }

func (t *ticks) Read(ctx context.Context) (int64, error) {
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(10 * time.Millisecond):
	}
	t.n++
	return t.n, nil
}

func (t *ticks) Open(_ context.Context, at batch.Position) error {
	if at == nil {
		return nil
	}
	_, err := fmt.Sscan(string(at), &t.n)
	return err
}

func (t *ticks) Position() (batch.Position, error) { return batch.Position(fmt.Sprint(t.n)), nil }

type forgetTicks struct{}

func (forgetTicks) Write(context.Context, []int64) error { return nil }

func tickComponents() fx.Option {
	return fx.Options(
		batch.Reader[int64]("ticks", func() *ticks { return &ticks{} }),
		batch.Writer[int64]("forget", func() forgetTicks { return forgetTicks{} }),
	)
}

// tickUntilStopped runs the job that is watched, and prints the number of its execution.
func tickUntilStopped(ctx context.Context, w Work) (err error) {
	stop, done := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer done()
	app, err := openApp(ctx, w, w.URL, tickComponents())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	running, err := app.Start(ctx, batch.RunRequest{File: filepath.Join(w.Dir, "watched.yaml"), Params: nights(int(time.Now().UnixMicro()))})
	if err != nil {
		return err
	}
	fmt.Println(running.Execution().ID)
	<-stop.Done()
	running.Stop()
	_, err = running.Wait()
	return err
}

// startTicking runs the job that is watched in a process of its own.
func startTicking(h *consoleHistory) (execution string, end func() error, err error) {
	w := h.work
	w.Tick, w.URL = true, h.url
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd, err := withWork(exec.Command(self), w)
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		_ = cmd.Wait() //nolint:errcheck // it was told to end
		return nil
	}
	if _, err := fmt.Fscan(out, &execution); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the watched job did not begin: %w", err), end())
	}
	return execution, end, nil
}
