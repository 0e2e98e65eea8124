package runlog

import (
	"context"
	"log/slog"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// sink takes lines: the Log.
type sink interface {
	newLine(level slog.Level, event, message string) ports.LogLine
	newValues() *values
	add(id core.JobExecutionID, line ports.LogLine)
	keep(s source)
	drop(s source)
	awake()
}

// source has lines that are not in the log yet.
type source interface{ flush(final bool) }

// origin is the work that a context belongs to.
type origin struct {
	log           sink
	execution     core.JobExecutionID
	stepExecution core.StepExecutionID
	step, part    string
}

type originKey struct{}

func with(ctx context.Context, o *origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// Without returns a context without an execution: records of an observer would be in its log twice.
func Without(ctx context.Context) context.Context {
	if originOf(ctx) == nil {
		return ctx
	}
	return with(ctx, nil)
}

func originOf(ctx context.Context) *origin {
	o, _ := ctx.Value(originKey{}).(*origin) //nolint:errcheck // nil is an answer
	return o
}

// parts splits the recorded name of a step into the names of the step and of its part.
func parts(name string) (step, part string) {
	step, part, _ = strings.Cut(name, ":")
	return step, part
}

func (o *origin) line(level slog.Level, event, message string) ports.LogLine {
	line := o.log.newLine(level, event, message)
	line.Execution, line.StepExecution, line.Step, line.Part = o.execution, o.stepExecution, o.step, o.part
	return line
}

func (o *origin) add(line ports.LogLine) { o.log.add(o.execution, line) }
