package process

import "syscall"

// dieWithParent has the kernel kill the process when its parent is gone. It is
// the second net: it needs no guard, and does not reach what the process started.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
