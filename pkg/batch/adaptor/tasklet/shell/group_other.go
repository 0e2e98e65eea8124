//go:build !unix

package shell

import (
	"os"
	"os/exec"
)

// There are no process groups: only the process itself is ended.
func ownGroup(*exec.Cmd) {}

func endGroup(p *os.Process) error { return p.Kill() }

func killGroup(int) error { return nil }
