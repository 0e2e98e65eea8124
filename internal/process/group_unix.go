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

// lifeline is the guard's program for a group: it reads from a pipe that only this process can write to. A
// line means that the work has ended. The end of the pipe means that this process has died; the guard then
// kills its own group: the process and all processes that it started.
const lifeline = `trap '' HUP INT QUIT TERM; read -r line || kill -KILL 0`

// group is a process group that does not outlive this process (rule L10). Its leader is the guard. It starts
// before the process that it guards, so it notices a death at any moment. Until it is waited for, no other
// process has the id of the group.
type group struct {
	guard *exec.Cmd // nil means that sh is missing
	line  io.WriteCloser
	id    int
}

// newGroup starts the guard. Without sh there is no guard; on Linux the process still dies with this one, but
// not the processes that it started.
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

// run runs the process in the group. It keeps the thread: on Linux the kernel takes the end of the thread
// that started a process for the end of its parent.
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

// close releases the guard. Processes that the process left stay.
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
