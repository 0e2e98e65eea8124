package process

import "syscall"

// dieWithParent makes the kernel kill the process when its parent is gone. It is the second safety net: it
// needs no guard, and does not reach the processes that the process started.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
