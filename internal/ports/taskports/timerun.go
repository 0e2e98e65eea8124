package taskports

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// TimeRun is the run of a schedule for a time (rule OP18).
type TimeRun struct {
	ID       task.ID           `json:"id" doc:"Its task; 0 if it has none yet"`
	Status   task.State        `json:"status" doc:"The state of the task"`
	Applied  bool              `json:"applied" doc:"False if nothing was submitted: the time had a task, or this is a dry run"`
	Job      string            `json:"job"`
	Key      string            `json:"key" doc:"The local time that identifies the run"`
	At       time.Time         `json:"at"`
	Timezone string            `json:"timezone"`
	Due      bool              `json:"due" doc:"Whether the schedule is due at this time"`
	Params   map[string]string `json:"params" doc:"The parameters that the schedule gives it"`
	Warnings []string          `json:"warnings,omitempty" doc:"Warnings about its start"`
}
