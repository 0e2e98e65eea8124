package operator

import (
	"encoding/json"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// JobTask is the payload of a task of type job.
type JobTask struct {
	// Job is one that every worker knows; empty for an Act.
	Job           string            `json:"job,omitempty"`
	Params        map[string]string `json:"params,omitempty"`
	Again         bool              `json:"again,omitempty"`
	Next          bool              `json:"next,omitempty"`
	FromStart     bool              `json:"from_start,omitempty"`
	AcceptChanges bool              `json:"accept_changes,omitempty"`
	// Retry allows to restart a failed execution; else only work that a worker
	// left unfinished is.
	Retry bool `json:"retry,omitempty"`
	// InTurn waits for earlier runs by the job's schedule.
	InTurn bool `json:"in_turn,omitempty"`
	// CatchUp runs one more instance for each earlier run of the schedule that
	// resumed a failed one (rule L3a).
	CatchUp bool `json:"catch_up,omitempty"`

	// Backfill names the parameter of the range of a back-fill: the instance has exactly these Params, and is
	// left out if it is complete.
	Backfill string `json:"backfill,omitempty"`
	// Act is one of BulkActs on Execution, bound to Epoch.
	Act       string              `json:"act,omitempty"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Epoch     int64               `json:"epoch,omitempty"`
	// Actor is not for tasks of a client of the API.
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (asked JobTask) isComplete() bool {
	return (asked.Job != "") != (asked.Act != "") && (asked.Backfill == "" || asked.Job != "") && (asked.Act == "" || slices.Contains(BulkActs(), asked.Act) && asked.Execution > 0)
}

// IsAct reports whether a payload of a task of type job is of a bulk or a back-fill.
func IsAct(payload json.RawMessage) bool {
	var asked JobTask
	return json.Unmarshal(payload, &asked) == nil && asked.isAct()
}

func (asked JobTask) isAct() bool { return asked.Act != "" || asked.Backfill != "" }

// BulkActs lists the acts of a BulkRequest.
func BulkActs() []string {
	return []string{ports.VerbRestart, ports.VerbRedrive, ports.VerbStop, ports.VerbAbandon}
}
