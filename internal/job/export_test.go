package job

import (
	"time"
)

// ClockNow is the time of the launcher's clock.
func ClockNow(l *Launcher) time.Duration { return l.config.clock().Now() }
