//go:build unix && !linux

package boottime

import "golang.org/x/sys/unix"

// clock runs while the machine is suspended on macOS, and not everywhere else.
const clock = unix.CLOCK_MONOTONIC
