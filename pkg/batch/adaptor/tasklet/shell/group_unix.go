//go:build unix

package shell

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts the process as the leader of a group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks the group to end.
func endGroup(p *os.Process) error { return signal(p.Pid, syscall.SIGTERM) }

// killGroup ends what is left of the group.
func killGroup(pid int) error { return signal(pid, syscall.SIGKILL) }

func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(-pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
