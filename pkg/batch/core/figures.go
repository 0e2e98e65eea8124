package core

import (
	"context"
	"time"
)

// Figures are numbers over the whole history, including the work of other and dead processes. Metrics
// are derived from them (rule OP1).
type Figures struct {
	// At is the database's clock.
	At time.Time
	// Completed is the last time when an execution of each job was COMPLETED. Redrives do not count.
	Completed map[string]time.Time
	// Open are the unfinished executions, and the UNKNOWN ones.
	Open []OpenFigure
	// Tasks counts the tasks that a worker may take now, by type; Parts the parts of steps that a
	// worker may take, by job; DeadEvents the dead events of inboxes, by topic.
	Tasks, Parts, DeadEvents map[string]int64
	// Workers is the number of live workers.
	Workers int64
	// Schedules are the schedules of registered jobs that are enabled.
	Schedules []ScheduleFigure
}

// OpenFigure is the number of executions of a job with one status. Since is the launch time of the
// oldest one.
type OpenFigure struct {
	JobName string
	Status  Status
	Count   int64
	Since   time.Time
}

// ScheduleFigure is the due time of a registered job.
type ScheduleFigure struct {
	JobName string
	// Next is the first time after Figures.At; zero if there is none.
	Next time.Time
	// Late is the age of the oldest due time without a begun run; 0 if none is late.
	Late time.Duration
}

// FiguresFunc reads the figures of the history, with at most five statements.
type FiguresFunc func(ctx context.Context) (Figures, error)
