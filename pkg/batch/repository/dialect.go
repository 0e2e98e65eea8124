package repository

import (
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
)

type instant = gormtx.Instant

// clock is the database's time at the write, plus d.
func clock(d time.Duration) instant { return gormtx.Clock(d) }
