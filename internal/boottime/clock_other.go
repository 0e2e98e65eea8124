//go:build unix && !linux

package boottime

import "golang.org/x/sys/unix"

// clock runs while the machine is suspended only on macOS.
const clock = unix.CLOCK_MONOTONIC
