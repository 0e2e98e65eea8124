//go:build unix

package boottime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since a fixed moment while the machine runs.
func Now() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(clock, &at); err != nil { // every system that Go runs on has it
		panic(fmt.Sprintf("boottime: %v", err))
	}
	return time.Duration(at.Nano())
}
