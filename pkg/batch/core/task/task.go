package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ID identifies a task, GroupID the tasks that were submitted together, AttemptID one
// execution of a task.
type (
	ID        int64
	GroupID   int64
	AttemptID int64
)

// TypeJob is the type of tasks that run a job.
const TypeJob = "job"

// Spec is a requested task. A handler works with Type and Payload; the rest describes the task to
// people and deciders, and is stored unchanged.
type Spec struct {
	// Type selects the handler. "" means SeedActionHint's "type", else the type of the group.
	Type    string          `json:"type,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Title   string          `json:"title,omitempty"`
	Intent  string          `json:"intent,omitempty"`

	Goal             json.RawMessage `json:"goal,omitempty"`
	Constraints      json.RawMessage `json:"constraints,omitempty"`
	SeedActionHint   json.RawMessage `json:"seed_action_hint,omitempty"`
	DependenciesHint json.RawMessage `json:"dependencies_hint,omitempty"` // stored; nothing acts on it: see After

	// Key names the task within its group, for the After of other tasks. "" means no name.
	Key string `json:"key,omitempty"`
	// After are keys of other tasks of the group (Key, else IdempotencyKey): the task waits until
	// all of them have succeeded, and is canceled if one ends without success (rule TO1).
	After []string `json:"after,omitempty"`

	// Priority orders waiting tasks: 1 (first) to 4; 0 means 2.
	Priority int `json:"priority,omitempty"`
	// On restricts the workers that may execute it: the leader assigns it to one of them (rule PL2).
	// nil means that any worker claims it.
	On *core.Placement `json:"on,omitempty"`
	// Delay is the time from the submission to the first attempt.
	Delay time.Duration `json:"delay,omitempty"`
	// Timeout ends an attempt, which fails; the decider may try again. 0 means none.
	Timeout time.Duration `json:"timeout,omitempty"`
	// IdempotencyKey makes a second submission of the task return the first one. "" means none.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// JobDefinition and ScheduledFor belong to a run requested by a schedule: each local time of a
	// definition has one task.
	JobDefinition int64  `json:"job_definition_id,omitempty"`
	ScheduledFor  string `json:"scheduled_for,omitempty"`
	// Client is the API client that submitted it, or nil.
	Client *Client `json:"client,omitempty"`
}

// Client identifies the submitter of a task through an API, and the folders allowed for its paths in
// addition to the folders of job files (rule SE3).
type Client struct {
	Name  string   `json:"name,omitempty"`
	Paths []string `json:"paths,omitempty"`
}

// The priorities.
const (
	FirstPriority   = 1
	DefaultPriority = 2
	LastPriority    = 4
)

// The limits of a spec, in bytes.
const (
	maxType = 100
	maxKey  = 200
	// maxGroupKey is larger: the API puts the name of its client before a key of maxKey bytes.
	maxGroupKey = 300
	maxTitle    = 1000
	maxPayload  = 1 << 20
)

// TypeOr returns the type of the task in a group of the given type.
func (s Spec) TypeOr(group string) string {
	if s.Type != "" {
		return s.Type
	}
	var hint struct {
		Type string `json:"type"`
	}
	if len(s.SeedActionHint) > 0 && json.Unmarshal(s.SeedActionHint, &hint) == nil && hint.Type != "" {
		return hint.Type
	}
	return group
}

// Check reports all errors in the spec of a task with a resolved type.
func (s Spec) Check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Type == "" {
		wrong(`type: the task has none, its seed_action_hint has none, and its group has none: write "type" in the task, such as {"type": "http_request", "payload": {"url": "https://example.com"}}, or in the group for all its tasks; handlers use type and payload; title and goal are for people and deciders`)
	}
	for _, text := range []boundedText{{"type", s.Type, maxType}, {"idempotency_key", s.IdempotencyKey, maxKey}, {"title", s.Title, maxTitle}, {"intent", s.Intent, maxPayload}, {"key", s.Key, maxKey}} {
		errs = append(errs, text.check())
	}
	for _, key := range s.After {
		errs = append(errs, boundedText{"after", key, maxKey}.check())
	}
	for _, doc := range []struct {
		name string
		json json.RawMessage
	}{{"payload", s.Payload}, {"goal", s.Goal}, {"constraints", s.Constraints}, {"seed_action_hint", s.SeedActionHint}, {"dependencies_hint", s.DependenciesHint}} {
		if len(doc.json) > maxPayload {
			wrong("%s: it has %d bytes, more than the allowed %d", doc.name, len(doc.json), maxPayload)
		} else if len(doc.json) > 0 && !isJSON(doc.json) {
			wrong("%s: it is not JSON in UTF-8", doc.name)
		}
	}
	if s.Priority != 0 && (s.Priority < FirstPriority || s.Priority > LastPriority) {
		wrong("priority: it is %d (allowed: %d, the first, to %d)", s.Priority, FirstPriority, LastPriority)
	}
	if s.On != nil {
		if err := s.On.Check(); err != nil {
			wrong("on: %w", err)
		} else if s.On.IsZero() {
			wrong("on: it has no label: write one, such as {\"disk\": \"eu1\"}, or omit it")
		}
	}
	if s.Delay < 0 {
		wrong("delay: it is %v, but must not be negative", s.Delay)
	}
	if s.Timeout < 0 {
		wrong("timeout: it is %v, but must not be negative", s.Timeout)
	}
	return errors.Join(errs...)
}

// boundedText is a text of a submission, and its maximum length in bytes.
type boundedText struct {
	name, text string
	most       int
}

func (t boundedText) check() error {
	var errs []error
	if len(t.text) > t.most {
		errs = append(errs, fmt.Errorf("%s: it has %d bytes, more than the allowed %d", t.name, len(t.text), t.most))
	}
	if !isStorable(t.text) {
		errs = append(errs, fmt.Errorf("%s: %q is not a text of UTF-8 without NUL", t.name, t.text))
	}
	return errors.Join(errs...)
}

// isJSON reports whether every database accepts the document.
func isJSON(doc json.RawMessage) bool { return json.Valid(doc) && utf8.Valid(doc) }

func isStorable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for i := range len(text) {
		if text[i] == 0 {
			return false
		}
	}
	return true
}

// Task is a copy of a task, for handlers and queries. Changing it has no effect.
type Task struct {
	ID      ID      `json:"id"`
	GroupID GroupID `json:"group_id"`
	Spec    Spec    `json:"spec"` // Type and Priority are filled in
	State   State   `json:"state"`
	// Attempt counts assignments, including this one; Attempts counts executions. If the worker left
	// before it started, the task was assigned, but not executed.
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
	Worker   string `json:"worker,omitempty"`
	Epoch    int64  `json:"epoch"`
	Version  int64  `json:"version"`
	// LastError is the reason of the last retry, or of the end.
	LastError string `json:"last_error,omitempty"`
	// Confirming means that the heartbeat of its worker is overdue.
	Confirming bool `json:"confirming,omitempty"`
	// OpenAfter are the first five tasks that a WAITING task waits for, and OpenAfterCount is their
	// total number.
	OpenAfter      []Awaited  `json:"open_after,omitempty"`
	OpenAfterCount int        `json:"open_after_count,omitempty"`
	NextRunAt      *time.Time `json:"next_run_at,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
}

// Decode reads the payload into a value. An absent payload leaves it unchanged.
func (t Task) Decode(into any) error {
	if len(t.Spec.Payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(t.Spec.Payload, into); err != nil {
		return fmt.Errorf("the payload of task %d: %w", t.ID, err)
	}
	return nil
}

// Handler executes tasks of one type. An error or a panic is the outcome Failure; a fatal BatchError
// ends the task. When ctx ends, its cause says why: the task was canceled, its time is over, or the
// worker stops. A handler that does not return soon after that is abandoned, unless it is a
// core.Composite: its inner work has rules of its own.
type Handler interface {
	Execute(ctx context.Context, t Task) (Outcome, error)
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, t Task) (Outcome, error)

// Execute calls f.
func (f HandlerFunc) Execute(ctx context.Context, t Task) (Outcome, error) { return f(ctx, t) }

// The causes that end a handler's context.
var (
	ErrCanceled = errors.New("the task was canceled")
	ErrTimeout  = errors.New("the attempt timed out")
	ErrDeadline = errors.New("the deadline of the group has passed")
	ErrStopping = errors.New("the worker stops")
)
