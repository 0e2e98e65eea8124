package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// The JSON form of records. The words are those of the job file's expressions
// (steps.NAME.read and so on); durations are seconds, times RFC 3339 in UTC.
type (
	executionRecord struct {
		Execution  int64          `json:"execution"`
		Instance   int64          `json:"instance"`
		Job        string         `json:"job"`
		Status     string         `json:"status"`
		Exit       string         `json:"exit,omitempty"`
		Error      string         `json:"error,omitempty"`
		Attempt    int            `json:"attempt"`
		Parameters map[string]any `json:"parameters"`
		Created    *time.Time     `json:"created,omitempty"`
		Started    *time.Time     `json:"started,omitempty"`
		Ended      *time.Time     `json:"ended,omitempty"`
		Duration   float64        `json:"duration"`
		Owner      *ownerRecord   `json:"owner,omitempty"` // while it runs
		File       string         `json:"file,omitempty"`
		Database   string         `json:"database,omitempty"`
		// RedriveOf is the execution whose skipped items this one redrives; RedrivenBy
		// are those that redrive its own, newest first (show only).
		RedriveOf  int64   `json:"redrive_of,omitempty"`
		RedrivenBy []int64 `json:"redriven_by,omitempty"`
		// Parent is the execution that ran this one as a step.
		Parent int64 `json:"parent,omitempty"`

		// Gate says how what the job was to expect was answered.
		Gate string `json:"gate,omitempty"`

		Steps   []stepRecord      `json:"steps,omitempty"`
		Targets []operator.Target `json:"targets,omitempty"` // of run and restart
		// Decisions and Audit are those of show, and of show --audit.
		Decisions []decisionRecord `json:"decisions,omitempty"`
		Audit     []auditRecord    `json:"audit,omitempty"`
		// Restart is the command that goes on where it ended.
		Restart string `json:"restart,omitempty"`
	}
	ownerRecord struct {
		Host       string     `json:"host"`
		PID        int        `json:"pid"`
		LeaseUntil *time.Time `json:"lease_until,omitempty"`
	}
	stepRecord struct {
		Step          string         `json:"step"`
		Execution     int64          `json:"execution"`
		Status        string         `json:"status"`
		Exit          string         `json:"exit,omitempty"`
		Error         string         `json:"error,omitempty"`
		Read          int64          `json:"read"`
		Written       int64          `json:"written"`
		Filtered      int64          `json:"filtered"`
		Skipped       int64          `json:"skipped"`
		ReadSkipped   int64          `json:"read_skipped"`
		ProcessSkip   int64          `json:"process_skipped"`
		WriteSkipped  int64          `json:"write_skipped"`
		Commits       int64          `json:"commits"`
		Rollbacks     int64          `json:"rollbacks"`
		Started       *time.Time     `json:"started,omitempty"`
		Ended         *time.Time     `json:"ended,omitempty"`
		Duration      float64        `json:"duration"`
		RowsPerSecond float64        `json:"rows_per_second"`
		Gate          string         `json:"gate,omitempty"`
		Out           map[string]any `json:"out,omitempty"`
		// Child is the execution of the job that the step ran.
		Child int64 `json:"child,omitempty"`
		// Partitions are those of a partitioned step.
		Partitions *partitionsRecord `json:"partitions,omitempty"`
	}
)

func (p *program) executionRecord(e core.JobExecution) executionRecord {
	r := executionRecord{
		Execution: int64(e.ID), Instance: int64(e.InstanceID), Job: e.JobName,
		Status: string(e.Status), Exit: e.ExitCode, Error: e.Error, Attempt: e.Attempt, RedriveOf: int64(e.RedriveOf), Parent: int64(e.Parent),
		Parameters: map[string]any{}, File: e.Definition.Path, Gate: e.Gate,
		Created: timeRecord(e.CreatedAt), Started: timeRecord(e.StartedAt), Ended: timeRecord(e.EndedAt),
		Duration: seconds(elapsed(e.StartedAt, e.EndedAt, p.now())),
	}
	for _, q := range e.Params.All() {
		r.Parameters[q.Name] = parameterRecord(q)
	}
	if e.Status.IsRunning() {
		r.Owner = &ownerRecord{Host: e.Owner.Host, PID: e.Owner.PID, LeaseUntil: timeRecord(e.LeaseUntil)}
	}
	if restartable(e.Status) {
		r.Restart = p.restartLine(e, "FILE")
	}
	return r
}

func (p *program) stepRecord(s core.StepExecution) stepRecord {
	took := elapsed(s.StartedAt, s.EndedAt, p.now())
	c := s.Counters
	return stepRecord{
		Step: s.Name, Execution: int64(s.JobExecutionID), Status: string(s.Status), Exit: s.ExitCode, Error: s.Error,
		Read: c.Read, Written: c.Write, Filtered: c.Filter, Skipped: c.Skips(),
		ReadSkipped: c.ReadSkip, ProcessSkip: c.ProcessSkip, WriteSkipped: c.WriteSkip,
		Commits: c.Commit, Rollbacks: c.Rollback,
		Started: timeRecord(s.StartedAt), Ended: timeRecord(s.EndedAt), Duration: seconds(took),
		RowsPerSecond: float64(int64(rowsPerSecond(c, took))), Out: s.Out, Gate: s.Gate, Child: int64(childOf(s)),
	}
}

// parameterRecord keeps numbers and truth values; everything else is its
// canonical text.
func parameterRecord(p core.Parameter) any {
	switch v := p.Value.(type) {
	case int64, float64, bool:
		return v
	}
	text, err := p.Canonical()
	if err != nil {
		return fmt.Sprint(p.Value) // cannot be: NewParameters has checked it
	}
	return text
}

// restartable says that a restart of an execution in this status may do
// something: a running one whose owner is dead is taken over.
func restartable(s core.Status) bool {
	return s == core.StatusFailed || s == core.StatusStopped
}

func rowsPerSecond(c core.Counters, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(rowsOf(c)) / took.Seconds()
}

func timeRecord(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// seconds rounds to microseconds: what is behind is noise.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// printJSON prints one indented JSON document.
func (p *program) printJSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // conditions have < and >, and are to be read
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return p.print(b.String())
}

// print writes a result to standard output.
func (p *program) print(text string) error {
	if _, err := p.out.Write([]byte(text)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}
