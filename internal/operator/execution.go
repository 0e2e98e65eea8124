package operator

import (
	"encoding/json"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Execution is a job execution as clients see it. Durations are seconds, times
// RFC 3339 in UTC.
type Execution struct {
	ID         core.JobExecutionID `json:"execution"`
	InstanceID core.JobInstanceID  `json:"instance"`
	JobName    string              `json:"job"`
	Status     core.Status         `json:"status"`
	ExitCode   string              `json:"exit,omitempty"`
	Error      string              `json:"error,omitempty"`
	// FailedStep is the first step that failed; set by List if requested.
	FailedStep string `json:"failed_step,omitempty"`
	Attempt    int    `json:"attempt"`
	// Epoch counts its owners: an act can be bound to it (rule OP14).
	Epoch  int64      `json:"epoch,omitempty"`
	Params Parameters `json:"parameters"`

	CreatedAt time.Time `json:"created,omitzero"`
	StartedAt time.Time `json:"started,omitzero"`
	EndedAt   time.Time `json:"ended,omitzero"`
	// Duration is up to now while it runs.
	Duration float64 `json:"duration"`

	// Owner is nil if it does not run, or is parked.
	Owner *Owner `json:"owner,omitempty"`
	// Waiting is set if requested.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Placed is set if requested.
	Placed []PlacedWork `json:"placed,omitempty"`
	// File is absolute; empty if there was none.
	File string `json:"file,omitempty"`
	// RedriveOf is the execution that this one redrives, or 0.
	RedriveOf core.JobExecutionID `json:"redrive_of,omitempty"`
	// Parent is the execution that ran this one as a step, or 0.
	Parent core.JobExecutionID `json:"parent,omitempty"`
	// Gate is the result of the job's `expect`.
	Gate    string   `json:"gate,omitempty"`
	Actions []Action `json:"actions,omitempty"`
}

// Parameters are typed parameters. In JSON, numbers and booleans are unchanged,
// others canonical texts.
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

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

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

// Lease is the state of a running owner's lease.
type Lease string

// The states of a lease.
const (
	LeaseHeld    Lease = "held"
	LeaseExpired Lease = "expired"
	// LeaseDead means that the owner's process was on this host, and is gone.
	LeaseDead Lease = "dead"
)

func leaseOf(o *Owner) Lease {
	switch {
	case o == nil:
		return ""
	case o.Dead:
		return LeaseDead
	case o.Lost:
		return LeaseExpired
	}
	return LeaseHeld
}
