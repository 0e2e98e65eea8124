package core

import (
	"time"
)

// Figures cover the whole history, of all processes, for metrics (rule OP1).
type Figures struct {
	At time.Time
	// Completed is each job's last COMPLETED time, without redrives.
	Completed map[string]time.Time
	Open      []OpenFigure
	// Tasks by type and Parts by job may be taken by a worker now; DeadEvents by topic.
	Tasks, Parts, DeadEvents map[string]int64
	// Workers counts live ones.
	Workers   int64
	Schedules []ScheduleFigure
}

// OpenFigure counts a job's executions of one status; Since is the oldest launch.
type OpenFigure struct {
	JobName string
	Status  Status
	Count   int64
	Since   time.Time
}

// ScheduleFigure is a registered job's due time.
type ScheduleFigure struct {
	JobName string
	// Next is after Figures.At; zero if none.
	Next time.Time
	// Late is the age of the oldest due time without a begun run; 0 if none.
	Late time.Duration
}
