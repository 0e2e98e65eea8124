package ports

import (
	"context"
	"log/slog"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// LogLine is a line of the log of an execution (rule LG1).
type LogLine struct {
	// Seq numbers the lines of an execution from 1, in the order in which they were stored.
	Seq       int64
	Execution core.JobExecutionID
	// StepExecution is 0 for a line of no step.
	StepExecution core.StepExecutionID
	Step, Part    string
	// Process is HOST/PID of the process that wrote the line; Number counts the lines of its Writer.
	Process string
	Writer  string
	Number  int64
	Level   slog.Level
	At      time.Time // of the process
	// Event is the stable name of the event, such as step.ended.
	Event   string
	Message string
	// Attributes are a JSON object, or empty.
	Attributes string
}

// lineBytes are counted for a line in addition to its texts.
const lineBytes = 100

// Bytes is the size of the line in the bound of an execution's log.
func (l *LogLine) Bytes() int64 {
	return int64(len(l.Message)+len(l.Attributes)+len(l.Event)+len(l.Step)+len(l.Part)+len(l.Process)) + lineBytes
}

// LogLeftOut counts the lines that a log does not have.
type LogLeftOut struct {
	// Thinned are repetitions between the first and the last ones, Bound those beyond the size of a log,
	// Lost those that could not be stored.
	Thinned, Bound, Lost int64
}

// Add returns the sum.
func (o LogLeftOut) Add(other LogLeftOut) LogLeftOut {
	return LogLeftOut{o.Thinned + other.Thinned, o.Bound + other.Bound, o.Lost + other.Lost}
}

// LogSize is how much of an execution's log is stored.
type LogSize struct {
	Lines, Bytes int64
	LeftOut      LogLeftOut
}

// LogBatch are the next lines of an execution, of one writer.
type LogBatch struct {
	Execution core.JobExecutionID
	Lines     []LogLine
	LeftOut   LogLeftOut
	// Again means that an earlier call may have stored the lines: its answer was lost.
	Again bool
}

// LogWriter stores lines.
type LogWriter interface {
	// AppendLog stores batches of different executions in one transaction. The answer has no execution that
	// no longer exists: its lines are dropped.
	AppendLog(ctx context.Context, batches []LogBatch) (map[core.JobExecutionID]LogSize, error)
}

// LogFilter selects lines of an execution; zero fields select all.
type LogFilter struct {
	Execution core.JobExecutionID
	// Step selects the lines of a step with its parts, Part the lines of one part.
	Step, Part string
	// Level is the lowest one; AnyLevel selects all.
	Level slog.Level
	// Text is contained in the message, the event or the attributes, in upper or lower case.
	Text string
	// After selects later lines, from the first one on; Before selects earlier ones, back from the last one.
	After, Before int64
	// Backward reads back from Before, or from the end if that is 0.
	Backward bool
	// Limit is the page size; 0 means 500.
	Limit int
}

// AnyLevel is below every level.
const AnyLevel = slog.Level(-100)

// LogPage is a page of a log, in the order of the lines.
type LogPage struct {
	Lines []LogLine
	// From and To are the numbers of the lines that were searched: a page reads a bounded number.
	From, To int64
	Size     LogSize
}

// LogReader reads logs.
type LogReader interface {
	// LogPage returns a page; an execution without a log has an empty one.
	LogPage(ctx context.Context, filter LogFilter) (LogPage, error)
}

// Logs has the logs of executions.
type Logs interface {
	LogWriter
	LogReader
}
