package api

import (
	"time"

	"github.com/surfin-batch/surfin/internal/access"
)

const (
	maxHeaders = 64 << 10
	bodyTime   = 10 * time.Second
)

// An answer has more time than the work that it reports.
const (
	headerTime   = 5 * time.Second
	writeTime    = access.RequestTime + 30*time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 10 * time.Second
)
