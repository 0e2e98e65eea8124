package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type taskGroup struct {
	ID                task.GroupID `gorm:"primaryKey"`
	Title             string
	Budget            string
	Decider           string
	TaskCount         int64
	IdempotencyKey    *string
	RequestHash       string
	MaxTotalAttempts  int64
	Stalled           bool                `gorm:"default:false"`
	Ordered           bool                `gorm:"default:false"`
	CountedAfter      taskports.AttemptID `gorm:"default:0"`
	DeadlineAt        gormtx.Instant
	CancelRequestedAt gormtx.Instant
	StepExecutionID   *core.StepExecutionID
	CreatedAt         gormtx.Instant `gorm:"autoCreateTime:false"`
	UpdatedAt         gormtx.Instant `gorm:"autoUpdateTime:false"`
}

// groupBounds are stored in the column budget.
type groupBounds struct {
	task.Budget
	Parallel int `json:"parallel,omitempty"`
}

func boundsOf(group task.GroupID, text string) (b groupBounds, err error) {
	if err = json.Unmarshal([]byte(text), &b); err != nil {
		err = fmt.Errorf("the stored budget of group %d: %w", group, err)
	}
	return b, err
}

func budgetOf(group task.GroupID, text string) (task.Budget, error) {
	b, err := boundsOf(group, text)
	return b.Budget, err
}

type taskRow struct {
	ID                task.ID `gorm:"primaryKey"`
	GroupID           task.GroupID
	Ordinal           int64
	Type              string
	Priority          int
	Payload           string
	Spec              string
	TimeoutUs         int64
	State             task.State
	Epoch             int64
	Version           int64 `gorm:"default:0"`
	Attempt           int   `gorm:"default:0"`
	Attempts          int   `gorm:"default:0"`
	Tries             int   `gorm:"default:0"`
	Worker            string
	Placement         string
	ContinuationState string `gorm:"default:NONE"`
	NextRunAt         gormtx.Instant
	DeadlineAt        gormtx.Instant
	DeliveredAt       gormtx.Instant
	JobDefinitionID   *int64
	ScheduledFor      *string
	IdempotencyKey    *string
	RequestHash       string
	LastError         string
	CreatedAt         gormtx.Instant `gorm:"autoCreateTime:false"`
	UpdatedAt         gormtx.Instant `gorm:"autoUpdateTime:false"`
}

func (row *taskRow) record() (*task.Task, error) {
	t := &task.Task{
		ID: row.ID, GroupID: row.GroupID, State: row.State, Attempt: row.Attempt, Attempts: row.Attempts, Worker: row.Worker,
		Epoch: row.Epoch, Version: row.Version, LastError: row.LastError, Confirming: row.ContinuationState == confirming,
		CreatedAt: row.CreatedAt.Time, UpdatedAt: row.UpdatedAt.Time, NextRunAt: timeOf(row.NextRunAt),
	}
	err := json.Unmarshal([]byte(row.Spec), &t.Spec)
	if err != nil {
		t.Spec, err = task.Spec{}, fmt.Errorf("the stored spec of task %d: %w: %w", row.ID, ports.ErrUnreadable, err)
	}
	t.Spec.Type, t.Spec.Priority, t.Spec.Timeout = row.Type, row.Priority, time.Duration(row.TimeoutUs)*time.Microsecond
	if row.Payload != "" {
		t.Spec.Payload = json.RawMessage(row.Payload)
	}
	return t, err
}

func (row *taskRow) name() string {
	var spec task.Spec
	if err := json.Unmarshal([]byte(row.Spec), &spec); err != nil || spec.Key == "" {
		if row.IdempotencyKey == nil {
			return fmt.Sprintf("task %d", row.ID)
		}
		spec.Key = *row.IdempotencyKey
	}
	return fmt.Sprintf("task %d (%q)", row.ID, spec.Key)
}

// records are for views.
func records(rows []taskRow) []task.Task {
	list := make([]task.Task, len(rows))
	for i := range rows {
		t, err := rows[i].record()
		if t.Spec.Payload != nil && !json.Valid(t.Spec.Payload) {
			t.Spec.Payload, err = nil, errors.Join(err, fmt.Errorf("the stored payload of task %d: %w: it is not JSON", t.ID, ports.ErrUnreadable))
		}
		if t.Unreadable = err; err != nil {
			t.LastError = strings.TrimSuffix(err.Error()+"; "+t.LastError, "; ")
		}
		list[i] = *t
	}
	return list
}

// forDelivery are the columns of a delivery. A repeated delivery has the time of the submission, so
// that it precedes tasks submitted later; a first one, or one for a later time, has its own time.
const forDelivery = "id, epoch, type, priority, placement, CASE WHEN epoch > 1 AND COALESCE(next_run_at <= {now}, TRUE) THEN created_at ELSE next_run_at END AS next_run_at"

func (row *taskRow) delivery() taskports.Delivery {
	return taskports.Delivery{ID: row.ID, Epoch: row.Epoch, Type: row.Type, Priority: row.Priority, NotBefore: row.NextRunAt.Time}
}

// deliveries returns the deliveries of rows without a placement: others are delivered to the worker
// that the leader assigns them to.
func deliveries(rows []taskRow) []taskports.Delivery {
	list := make([]taskports.Delivery, 0, len(rows))
	for i := range rows {
		if rows[i].Placement == "" {
			list = append(list, rows[i].delivery())
		}
	}
	return list
}

const (
	confirming    = "CONFIRMING"
	notConfirming = "NONE"
)

type taskAfter struct {
	TaskID  task.ID
	NeedsID task.ID
	Needs   string
}

type taskAttempt struct {
	ID        taskports.AttemptID `gorm:"primaryKey"`
	TaskID    task.ID
	GroupID   task.GroupID
	Number    int
	Epoch     int64
	State     taskports.AttemptState
	Worker    string
	Outcome   string
	Reason    string
	StartedAt gormtx.Instant
	EndedAt   gormtx.Instant
}

type taskLog struct {
	AttemptID taskports.AttemptID
	Ordinal   int
	Kind      task.ArtifactKind
	Body      *string
	LogRef    string
	CreatedAt gormtx.Instant `gorm:"autoCreateTime:false"`
}

type taskDecision struct {
	TaskID    task.ID
	AttemptID *taskports.AttemptID
	Trigger   string
	Policy    string
	Decision  string
	Spent     string
	DecidedAt gormtx.Instant
}

func unsuccessful() []task.State { return []task.State{task.Failed, task.TimedOut, task.Canceled} }

func overStates() []task.State { return append([]task.State{task.Succeeded}, unsuccessful()...) }

func timeOf(i gormtx.Instant) *time.Time {
	if i.IsZero() {
		return nil
	}
	return &i.Time
}

func orNil[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// The maximum lengths of stored texts; the rest is cut off, with a note.
const (
	maxMessageBytes = 32 << 10
	maxLogBytes     = 1 << 20
)

func storable(text string) string { return gormtx.Storable(text, maxMessageBytes) }
