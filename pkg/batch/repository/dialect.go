package repository

import (
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
)

type instant = gormtx.Instant

func clock(d time.Duration) instant { return gormtx.Clock(d) }
