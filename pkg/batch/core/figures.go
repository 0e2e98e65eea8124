package core

import (
	"context"
	"time"
)

// Figures are numbers of the whole history, whichever process did the work and whether it still lives.
// Metrics are made of them (rule OP1).
type Figures struct {
	// At is the database's clock.
	At time.Time
	// Completed is when an execution of each job was COMPLETED last. Redrives do not count.
	Completed map[string]time.Time
	// Open are the executions that are not over, and those whose outcome is UNKNOWN.
	Open []OpenFigure
	// Tasks are those that a worker may take now, by type; Parts are the parts of steps that a worker may take,
	// by job; DeadEvents are the dead events of inboxes, by topic.
	Tasks, Parts, DeadEvents map[string]int64
	// Workers is how many are alive.
	Workers int64
	// Schedules are those of registered jobs that are enabled.
	Schedules []ScheduleFigure
}

// OpenFigure is a number of executions of a job with one status. Since is when the oldest one was launched.
type OpenFigure struct {
	JobName string
	Status  Status
	Count   int64
	Since   time.Time
}

// ScheduleFigure is when a registered job is due.
type ScheduleFigure struct {
	JobName string
	// Next is the first time after Figures.At; zero if there is none.
	Next time.Time
	// Late is how long ago the oldest time was due whose run has not begun; 0 if none is late.
	Late time.Duration
}

// FiguresFunc reads the figures of the history, with at most five statements.
type FiguresFunc func(ctx context.Context) (Figures, error)

// FiguresReader is an Observer that also reads the history.
type FiguresReader interface {
	Observer
	// ReadFigures is called once, before the first event. read may be called at any time until the
	// application is closed.
	ReadFigures(read FiguresFunc)
}
