package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTime = 60 * time.Second
	stopTime  = 30 * time.Second
	// connectTime is for one attempt: who took the port may accept no connection.
	connectTime = 5 * time.Second
	// portTries is how often a free port is looked for: another process can take it before the server does.
	portTries = 5
)

var errPortTaken = errors.New("another process took the port")

type process struct {
	dir   string
	stdin io.WriteCloser
	done  chan error
}

func newProcess(dir string) process { return process{dir: dir, done: make(chan error, 1)} }

// supervisor runs the server until its standard input ends, also when we are killed.
const supervisor = `while
"$@" >>"$SURFIN_PG_DIR/log" 2>&1 </dev/null & pid=$!
read -r again signal away
kill -"${signal:-$SURFIN_PG_SIGNAL}" $pid 2>/dev/null
wait $pid
[ -n "$again" ]
do sleep "${away:-0}"; done
rm -rf "$SURFIN_PG_DIR"`

func (p *process) supervise(who account, signal string, command ...string) error {
	cmd := exec.Command("sh", append([]string{"-c", supervisor, "sh"}, command...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "SURFIN_PG_DIR="+p.dir, "SURFIN_PG_SIGNAL="+signal)
	who.apply(cmd)
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	p.stdin = stdin
	go func() { p.done <- cmd.Wait() }()
	return nil
}

func (p *process) connect(ctx context.Context, url string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		asked, end := context.WithTimeout(ctx, connectTime)
		conn, err := pgx.Connect(asked, url)
		end()
		if err == nil {
			return conn, nil
		}
		log, _ := os.ReadFile(filepath.Join(p.dir, "log")) //nolint:errcheck // it only adds to the error
		if bytes.Contains(log, []byte("nowhere to listen on")) {
			return nil, fmt.Errorf("%w: %w\n%s", errPortTaken, err, bytes.TrimSpace(log))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the server in %s does not accept connections: %w\n%s", p.dir, err, bytes.TrimSpace(log))
		}
	}
}

func (p *process) Stop() error {
	if err := p.stdin.Close(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case err := <-p.done:
		if err != nil {
			return fmt.Errorf("stop the server: %w", err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("the server in %s did not stop within %s", p.dir, stopTime)
	}
}

func folder(name string) (dir string, who account, err error) {
	if who, err = unprivileged(); err != nil {
		return "", who, err
	}
	if dir, err = os.MkdirTemp("", "surfin-"+name+"-"); err != nil {
		return "", who, fmt.Errorf("folder of the test server: %w", err)
	}
	if err := who.own(dir); err != nil {
		return "", who, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, who, nil
}

func (a account) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("file of the test server: %w", err)
	}
	return a.own(path)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:errcheck // a tcp listener has a tcp address
	return port, l.Close()
}
