package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Execution is a job execution as clients see it. In JSON its keys are as in the job file's
// expressions, durations are seconds, and times are RFC 3339 in UTC.
type Execution struct {
	ID         core.JobExecutionID `json:"execution"`
	InstanceID core.JobInstanceID  `json:"instance"`
	JobName    string              `json:"job"`
	Status     core.Status         `json:"status"`
	ExitCode   string              `json:"exit,omitempty"`
	// Error is the message of the error or stop.
	Error   string     `json:"error,omitempty"`
	Attempt int        `json:"attempt"`
	Params  Parameters `json:"parameters"`

	CreatedAt time.Time `json:"created,omitzero"`
	StartedAt time.Time `json:"started,omitzero"`
	EndedAt   time.Time `json:"ended,omitzero"`
	// Duration is in seconds, up to now while it runs.
	Duration float64 `json:"duration"`

	// Owner is the process that runs it; nil if it does not run, or is parked.
	Owner *Owner `json:"owner,omitempty"`
	// Waiting describes the work that a parked execution waits for, if requested.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Placed is its work that waits for certain workers, if requested.
	Placed []PlacedWork `json:"placed,omitempty"`
	// File is the absolute path of the job file; empty if there was none.
	File string `json:"file,omitempty"`
	// RedriveOf is the execution with the skipped items that this one redrives, or 0.
	RedriveOf core.JobExecutionID `json:"redrive_of,omitempty"`
	// Parent is the execution that ran this one as a step, or 0.
	Parent core.JobExecutionID `json:"parent,omitempty"`
	// Gate is the result of the job's `expect`.
	Gate string `json:"gate,omitempty"`
	// Actions are the possible actions.
	Actions []Action `json:"actions,omitempty"`
}

// Owner is the process that runs an execution.
type Owner struct {
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// Dead means that the process is known to be dead: Recover ends the execution.
	Dead bool `json:"dead,omitempty"`
	// Lost means that a launch of the instance takes the execution over, and Recover ends it: the
	// process is dead, or its lease has expired by the clock of the database. No process does so by
	// itself.
	Lost bool `json:"lost,omitempty"`
}

// Parameters are typed parameters. In JSON they are an object: numbers and booleans unchanged, all
// others as their canonical text.
type Parameters struct{ core.Parameters }

// MarshalJSON writes an object.
func (p Parameters) MarshalJSON() ([]byte, error) {
	values := map[string]any{}
	for _, q := range p.All() {
		values[q.Name] = parameterValue(q)
	}
	return json.Marshal(values)
}

func parameterValue(p core.Parameter) any {
	switch v := p.Value.(type) {
	case int64, float64, bool:
		return v
	case row.Decimal:
		return v.Reduce() // a JSON number with all its digits
	}
	return p.Text()
}

func (s *Service) execution(e *core.JobExecution) *Execution {
	newest := s.asNewest(e)
	view := s.view(e, &newest)
	return &view
}

// executions returns the views of records, with one statement for all, and one more if some are
// parked.
func (s *Service) executions(ctx context.Context, records []core.JobExecution) ([]Execution, error) {
	judged, err := s.judged(ctx, records)
	views, failure := s.views(ctx, judged)
	return views, errors.Join(err, failure)
}

func (s *Service) views(ctx context.Context, judged []ports.JudgedExecution) ([]Execution, error) {
	waiting, err := s.waiting(ctx, judged)
	views := make([]Execution, len(judged))
	for i := range judged {
		views[i] = s.view(&judged[i].Execution, &judged[i].Newest)
		views[i].Waiting = waiting[judged[i].Execution.ID]
	}
	placed, failure := s.placed(ctx, judged)
	for i := range views {
		views[i].Placed = placed[views[i].ID]
	}
	return views, errors.Join(err, failure)
}

// judged reads the newest executions of the records' instances with one statement. Their leases are
// judged by the clock of the database, which has set them (rule L6).
func (s *Service) judged(ctx context.Context, records []core.JobExecution) ([]ports.JudgedExecution, error) {
	var ids []core.JobInstanceID
	for _, e := range records {
		if e.Status != core.StatusCompleted { // a complete one needs no action
			ids = append(ids, e.InstanceID)
		}
	}
	slices.Sort(ids)
	newest, err := s.config.Repository.NewestAttempts(ctx, s.config.Dead, slices.Compact(ids)...)
	judged := make([]ports.JudgedExecution, len(records))
	for i := range records {
		judged[i] = ports.JudgedExecution{Execution: records[i], Newest: s.newestOf(&records[i], newest)}
	}
	return judged, err
}

func (s *Service) judgedExecution(ctx context.Context, id core.JobExecutionID) (*ports.JudgedExecution, error) {
	found, err := s.config.Repository.Judged(ctx, ports.JudgedRequest{IDs: []core.JobExecutionID{id}, Dead: s.config.Dead})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("job execution %d: %w", id, core.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

func (s *Service) view(e *core.JobExecution, newest *ports.NewestAttempt) Execution {
	return Execution{
		ID: e.ID, InstanceID: e.InstanceID, JobName: e.JobName, Status: e.Status, ExitCode: e.ExitCode, Error: e.Error,
		Attempt: e.Attempt, Params: Parameters{e.Params}, CreatedAt: utc(e.CreatedAt), StartedAt: utc(e.StartedAt), EndedAt: utc(e.EndedAt),
		Duration: seconds(elapsed(e.StartedAt, e.EndedAt, s.config.Now())),
		File:     e.Definition.Path, RedriveOf: e.RedriveOf, Parent: e.Parent, Gate: e.Gate, Actions: s.actionsFor(e, newest), Owner: s.ownerOf(e, newest),
	}
}

// ownerOf returns the process that runs an execution, or nil, for example if it is parked.
func (s *Service) ownerOf(e *core.JobExecution, newest *ports.NewestAttempt) *Owner {
	if !e.Status.IsRunning() || e.Owner == (core.Owner{}) {
		return nil
	}
	return &Owner{
		Host: e.Owner.Host, PID: e.Owner.PID, LeaseUntil: utc(e.LeaseUntil), Dead: s.config.Dead(e.Owner),
		Lost: newest.Execution.ID == e.ID && newest.Lost,
	}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// seconds rounds to microseconds.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

func elapsed(start, end, now time.Time) time.Duration {
	switch {
	case start.IsZero():
		return 0
	case end.IsZero():
		return now.Sub(start)
	}
	return end.Sub(start)
}
