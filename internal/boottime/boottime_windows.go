package boottime

import (
	"time"

	"golang.org/x/sys/windows"
)

// Now returns the time since the machine was started.
func Now() time.Duration { return windows.DurationSinceBoot() }
