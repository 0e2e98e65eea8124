package process

import "syscall"

// dieWithParent makes the kernel kill the process with its parent: a second safety net, which does
// not reach its children.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
