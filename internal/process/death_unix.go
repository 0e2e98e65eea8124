//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing on systems without such a mechanism: the guard does it alone.
func dieWithParent(*syscall.SysProcAttr) {}
