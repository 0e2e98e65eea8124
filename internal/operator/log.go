package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// LogEnd is LogRequest.After for the last lines.
const LogEnd = -1

// maxLogLimit is the most lines of a page.
const maxLogLimit = 500

// LogRequest selects lines of an execution's log (rule LG5); zero fields select all, from the first line on.
type LogRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Attempt selects the execution of the instance with this number; 0 means Execution itself.
	Attempt int `json:"attempt,omitempty"`
	// Step is STEP, with its parts, or STEP:PART.
	Step string `json:"step,omitempty"`
	// Level is the lowest: debug, info, warn or error; empty means all.
	Level string `json:"level,omitempty"`
	// Text is in the message, the event or an attribute, in upper or lower case.
	Text string `json:"text,omitempty"`
	// After selects the lines after this number; LogEnd selects the last ones.
	After int64 `json:"after,omitempty"`
	// Before selects the lines before this number, the last of them; it wins over After.
	Before int64 `json:"before,omitempty"`
	// Limit: 0 means 500, the most.
	Limit int `json:"limit,omitempty"`
}

// ExecutionLog is a page of the log of an execution, in the order of the lines.
type ExecutionLog struct {
	Execution core.JobExecutionID `json:"execution" doc:"The execution of the lines: with attempt another one than the one in the path"`
	Attempt   int                 `json:"attempt" doc:"Its number among the executions of its instance"`
	JobName   string              `json:"job"`
	Status    core.Status         `json:"status" doc:"Of the execution, at the time of the answer"`
	Over      bool                `json:"over" doc:"The execution is over: a few lines may still be stored, up to a second later"`
	Lines     []LogLineView       `json:"lines" doc:"At most 500, in the order in which they were stored"`
	Next      int64               `json:"next" doc:"after of the page of later lines, also of those that are not stored yet"`
	More      bool                `json:"more,omitempty" doc:"Later lines are stored"`
	Previous  int64               `json:"previous,omitempty" doc:"before of the page of earlier lines; absent if there are none. A page reads at most 10,000 lines: with filters it may be empty, although earlier or later pages are not"`
	Stored    int64               `json:"stored" doc:"Lines of the whole log"`
	Bytes     int64               `json:"bytes" doc:"Size of the whole log, as the bound counts it (log.execution_bytes)"`
	LeftOut   LogLeftOut          `json:"left_out" doc:"Lines that the log does not have; it says so where they would be"`
}

// LogLeftOut counts lines by the reason for which the log does not have them.
type LogLeftOut struct {
	Repeated int64 `json:"repeated" doc:"Between the first and the last 100 lines of an event in a step"`
	Size     int64 `json:"size" doc:"Beyond the bound of a log (log.execution_bytes)"`
	Lost     int64 `json:"lost" doc:"Not stored in time: the database was away, or the memory for lines was full"`
}

// LogLineView is a line.
type LogLineView struct {
	Seq           int64                `json:"seq" doc:"Number of the line in the log, from 1"`
	At            time.Time            `json:"at" doc:"By the clock of the process that wrote it"`
	Level         string               `json:"level" doc:"DEBUG, INFO, WARN or ERROR, or between them such as INFO+1"`
	Event         string               `json:"event" doc:"Stable name, as in the log of the process; log: a component; output: lines of a process; cause: the cause of the error before it; panic.stack; log.thinned, log.bound and log.lost: lines that are left out"`
	Message       string               `json:"message" doc:"May have several lines"`
	Step          string               `json:"step,omitempty"`
	Part          string               `json:"part,omitempty"`
	StepExecution core.StepExecutionID `json:"step_execution,omitempty"`
	Process       string               `json:"process" doc:"HOST/PID of the process that wrote it"`
	Attributes    json.RawMessage      `json:"attributes,omitempty" doc:"An object; such as error, or stream of an output"`
}

type executionLogs struct {
	records interface {
		Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
		LogPage(ctx context.Context, filter ports.LogFilter) (ports.LogPage, error)
	}
}

// Log returns a page of the log of an execution. It may return core.ErrNotFound or a *RequestError.
func (s *executionLogs) Log(ctx context.Context, req LogRequest) (*ExecutionLog, error) {
	filter, err := req.filter()
	if err != nil {
		return nil, err
	}
	exec, err := seen(ctx, s.records, req.Execution)
	if err != nil {
		return nil, err
	}
	if req.Attempt != 0 && req.Attempt != exec.Attempt {
		if exec, err = s.attempt(ctx, exec, req.Attempt); err != nil {
			return nil, err
		}
	}
	filter.Execution = exec.ID
	page, err := s.records.LogPage(ctx, filter)
	if err != nil {
		return nil, err
	}
	view := &ExecutionLog{
		Execution: exec.ID, Attempt: exec.Attempt, JobName: exec.JobName, Status: exec.Status, Over: exec.Status.IsOver(), Lines: []LogLineView{},
		Next: page.To, More: page.To < page.Size.Lines, Stored: page.Size.Lines, Bytes: page.Size.Bytes,
		LeftOut: LogLeftOut{Repeated: page.Size.LeftOut.Thinned, Size: page.Size.LeftOut.Bound, Lost: page.Size.LeftOut.Lost},
	}
	if page.From > 1 && page.Size.Lines > 0 {
		view.Previous = page.From
	}
	for i := range page.Lines {
		view.Lines = append(view.Lines, logLineView(&page.Lines[i]))
	}
	return view, nil
}

func (r LogRequest) filter() (ports.LogFilter, error) {
	filter := ports.LogFilter{Level: ports.AnyLevel, Text: r.Text, After: max(0, r.After), Before: r.Before, Backward: r.Before > 0 || r.After < 0, Limit: r.Limit}
	filter.Step, filter.Part, _ = strings.Cut(r.Step, ":")
	if r.Limit < 0 || r.Limit > maxLogLimit {
		return filter, &RequestError{Field: "limit", Value: fmt.Sprint(r.Limit), Reason: fmt.Sprintf("it must be from 1 to %d", maxLogLimit)}
	}
	if r.Level == "" {
		return filter, nil
	}
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, known := levels[strings.ToLower(r.Level)]
	if !known {
		return filter, &RequestError{Field: "level", Value: r.Level, Reason: "no such level", Allowed: []string{"debug", "info", "warn", "error"}}
	}
	filter.Level = level
	return filter, nil
}

// attempt finds another execution of the instance.
func (s *executionLogs) attempt(ctx context.Context, of *core.JobExecution, n int) (*core.JobExecution, error) {
	for before := core.JobExecutionID(0); ; {
		list, err := s.records.Executions(ctx, ports.ExecutionFilter{Instance: of.InstanceID, Before: before, Brief: true})
		if err != nil {
			return nil, fmt.Errorf("list the attempts of instance %d: %w", of.InstanceID, err)
		}
		for i := range list {
			if list[i].Attempt == n {
				return &list[i], nil
			}
		}
		if len(list) == 0 || n < 1 {
			return nil, &RequestError{Field: "attempt", Value: fmt.Sprint(n), Reason: fmt.Sprintf("the instance of execution %d has no such attempt, or it was purged", of.ID)}
		}
		before = list[len(list)-1].ID
	}
}

func logLineView(l *ports.LogLine) LogLineView {
	view := LogLineView{
		Seq: l.Seq, At: utc(l.At), Level: l.Level.String(), Event: l.Event, Message: l.Message, Step: l.Step, Part: l.Part,
		StepExecution: l.StepExecution, Process: l.Process,
	}
	if l.Attributes != "" && json.Valid([]byte(l.Attributes)) {
		view.Attributes = json.RawMessage(l.Attributes)
	}
	return view
}
