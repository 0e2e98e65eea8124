//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// lifeline is the guard's program: the end of its pipe means that this process has died, and it
// kills its group; a line means that the work has ended.
const lifeline = `trap '' HUP INT QUIT TERM; read -r line || kill -KILL 0`

// group does not outlive this process (rule L10). Its leader, the guard, starts first, so it
// notices a death at any moment. Until it is waited for, its ID is not reused.
type group struct {
	guard *exec.Cmd // nil means that sh is missing
	line  io.WriteCloser
	id    int
}

// newGroup starts the guard, if there is an sh; without it Linux still kills the process itself.
func newGroup() (*group, error) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		return &group{}, nil //nolint:nilerr // see above
	}
	g := &group{guard: exec.Command(sh, "-c", lifeline)}
	g.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if g.line, err = g.guard.StdinPipe(); err != nil {
		return nil, fmt.Errorf("create the lifeline: %w", err)
	}
	if err := g.guard.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of the process: %w", err), g.line.Close())
	}
	g.id = g.guard.Process.Pid
	return g, nil
}

// run keeps the thread: on Linux the kernel takes the end of the thread that started a process
// for the end of its parent.
func (g *group) run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
	dieWithParent(cmd.SysProcAttr)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	if g.id == 0 {
		g.id = cmd.Process.Pid
	}
	return cmd.Wait()
}

func (g *group) end(p *os.Process) error {
	if g.guard == nil {
		return signal(p.Pid, syscall.SIGTERM)
	}
	return signal(g.id, syscall.SIGTERM)
}

func (g *group) kill() error {
	if g.id == 0 {
		return nil
	}
	return signal(g.id, syscall.SIGKILL)
}

func (g *group) close() {
	if g.guard == nil {
		return
	}
	_, _ = io.WriteString(g.line, "over\n") //nolint:errcheck // a guard that was killed with its group reads nothing
	_ = g.line.Close()                      //nolint:errcheck // likewise
	_ = g.guard.Wait()                      //nolint:errcheck // likewise
}

func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(-pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
