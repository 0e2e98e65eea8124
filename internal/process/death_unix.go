//go:build unix && !linux

package process

import "syscall"

// dieWithParent is for systems that have such a thing: the guard does it alone.
func dieWithParent(*syscall.SysProcAttr) {}
