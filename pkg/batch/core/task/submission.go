package task

import (
	"errors"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Submission is a group of tasks, not empty.
type Submission struct {
	Title string `json:"title,omitempty"`
	Tasks []Spec `json:"tasks"`
	// Type is its tasks' default.
	Type   string `json:"type,omitempty"`
	Budget Budget `json:"budget"`
	// Parallel bounds the tasks that are delivered and not over: the others wait. 0 means no bound.
	Parallel       int    `json:"parallel,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Decider is registered; "" means the default.
	Decider string `json:"decider,omitempty"`
	// Step waits for the group; 0 means none. The idempotency key does not cover it: a restart is another step
	// execution.
	Step core.StepExecutionID `json:"-"`
}

// Check reports errors in the group's texts; tasks and budget have their own.
func (s Submission) Check() error {
	var errs []error
	for _, text := range []boundedText{
		{"title", s.Title, maxTitle}, {"type", s.Type, maxType}, {"idempotency_key", s.IdempotencyKey, maxGroupKey}, {"decider", s.Decider, maxType},
	} {
		errs = append(errs, text.check())
	}
	if s.Parallel < 0 {
		errs = append(errs, errors.New("parallel is negative"))
	}
	return errors.Join(errs...)
}

// Submitted is the result of a submission.
type Submitted struct {
	Group     GroupID `json:"group"`
	Tasks     []ID    `json:"tasks"` // in order
	Duplicate bool    `json:"duplicate,omitempty"`
}

// Filter selects tasks, newest first; zero selects all.
type Filter struct {
	Group  GroupID
	State  State
	Type   string
	Before ID
	// JobDefinition selects a schedule's runs, ScheduledFor the run of one of
	// its local times.
	JobDefinition int64
	ScheduledFor  string
	// [Since, Until) bounds the time of the submission. Text is in the type,
	// the title, a key or the last error.
	Since, Until time.Time
	Text         string
	// Unfinished: not over.
	Unfinished bool
	Limit      int // 0 means 100
}

// Group was submitted together.
type Group struct {
	GroupStatus
	Title             string     `json:"title,omitempty"`
	Budget            Budget     `json:"budget"`
	Parallel          int        `json:"parallel,omitempty"`
	Decider           string     `json:"decider,omitempty"`
	CancelRequestedAt *time.Time `json:"cancel_requested_at,omitempty"`
	DeadlineAt        *time.Time `json:"deadline_at,omitempty"`
	CreatedAt         time.Time  `json:"created_at"`
	UpdatedAt         time.Time  `json:"updated_at"`
}
