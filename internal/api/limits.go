package api

import "time"

const (
	maxBody     = 1 << 20
	maxHeaders  = 64 << 10
	bodyTime    = 10 * time.Second
	requestTime = time.Minute
)

// An answer has more time than the work that it reports.
const (
	headerTime   = 5 * time.Second
	writeTime    = requestTime + 30*time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 10 * time.Second
)

// (rule AP1)
const (
	slowTime   = 2 * time.Second
	answerTime = 2 * time.Second
	retryAfter = 5 * time.Second
)
