//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// group outlives this process if this one is killed.
type group struct{}

func newGroup() (*group, error) { return &group{}, nil }

func (*group) run(cmd *exec.Cmd) error { return cmd.Run() }

func (*group) end(p *os.Process) error { return p.Kill() }

func (*group) kill() error { return nil }

func (*group) close() {}
