package job

import (
	"time"
)

func ClockNow(l *Launcher) time.Duration { return l.config.clock().Now() }
