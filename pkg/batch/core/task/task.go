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

// ID is of a task, GroupID of tasks submitted together.
type (
	ID      int64
	GroupID int64
)

// TypeJob tasks run a job.
const TypeJob = "job"

// Spec is a requested task.
type Spec struct {
	// Type selects the handler; "" means SeedActionHint's "type", else the group's.
	Type string `json:"type,omitempty"`
	// Payload is the handler's input.
	Payload json.RawMessage `json:"payload,omitempty"`
	Title   string          `json:"title,omitempty"`
	Hints

	// Key names the task for others' After; "" means none.
	Key string `json:"key,omitempty"`
	// After are keys in the group (Key, else IdempotencyKey): the task waits for their success, and is
	// canceled by a failure (rule TO1).
	After []string `json:"after,omitempty"`

	// Priority is 1 (first) to 4; 0 means 2.
	Priority int `json:"priority,omitempty"`
	// On restricts the workers: the leader assigns it (rule PL2). nil means any.
	On *core.Placement `json:"on,omitempty"`
	// Delay is before the first attempt.
	Delay time.Duration `json:"delay,omitempty"`
	// Timeout fails an attempt; 0 means none.
	Timeout time.Duration `json:"timeout,omitempty"`
	// IdempotencyKey makes a second submission return the first; "" means none.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Origin
}

// Hints are for people, deciders and handlers that know them. They are stored unchanged; only the "type" of
// SeedActionHint has an effect. In particular, no task waits because of DependenciesHint: use Spec.After.
type Hints struct {
	Intent           string          `json:"intent,omitempty"`
	Goal             json.RawMessage `json:"goal,omitempty"`
	Constraints      json.RawMessage `json:"constraints,omitempty"`
	SeedActionHint   json.RawMessage `json:"seed_action_hint,omitempty"`
	DependenciesHint json.RawMessage `json:"dependencies_hint,omitempty"`
}

// Origin is set by schedules and the API. Leave it zero.
type Origin struct {
	// A schedule has one task for each local time of a definition.
	JobDefinition int64  `json:"job_definition_id,omitempty"`
	ScheduledFor  string `json:"scheduled_for,omitempty"`
	// Client is the API client, or nil.
	Client *Client `json:"client,omitempty"`
}

// Client submitted by an API; Paths are allowed in addition to job files' folders (rule SE3).
type Client struct {
	Name  string   `json:"name,omitempty"`
	Paths []string `json:"paths,omitempty"`
}

const (
	firstPriority = 1
	lastPriority  = 4
)

// Limits of a spec, in bytes.
const (
	maxType = 100
	maxKey  = 200
	// maxGroupKey has room for the API client's name.
	maxGroupKey = 300
	maxTitle    = 1000
	maxPayload  = 1 << 20
)

// TypeOr is the task's type in a group of that type.
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

// Check reports all errors; the type is resolved.
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
	if s.Priority != 0 && (s.Priority < firstPriority || s.Priority > lastPriority) {
		wrong("priority: it is %d (allowed: %d, the first, to %d)", s.Priority, firstPriority, lastPriority)
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

// Task is a copy.
type Task struct {
	ID      ID      `json:"id"`
	GroupID GroupID `json:"group_id"`
	Spec    Spec    `json:"spec"` // Type and Priority are filled in
	State   State   `json:"state"`
	// Attempt counts assignments with this one; Attempts executions: a worker may leave before the start.
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
	Worker   string `json:"worker,omitempty"`
	Epoch    int64  `json:"epoch"`
	Version  int64  `json:"version"`
	// LastError is of the last retry, or the end.
	LastError  string `json:"last_error,omitempty"`
	Confirming bool   `json:"confirming,omitempty"`
	// OpenAfter are the first five awaited tasks; OpenAfterCount all.
	OpenAfter      []Awaited  `json:"open_after,omitempty"`
	OpenAfterCount int        `json:"open_after_count,omitempty"`
	NextRunAt      *time.Time `json:"next_run_at,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
	// Unreadable names stored data that are left out, since they cannot be parsed: only in lists and views. LastError has it, too.
	Unreadable error `json:"-"`
}

// Decode reads the payload; an absent one changes nothing.
func (t Task) Decode(into any) error {
	if len(t.Spec.Payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(t.Spec.Payload, into); err != nil {
		return fmt.Errorf("the payload of task %d: %w", t.ID, err)
	}
	return nil
}

// Handler executes one type's tasks. An error or panic is Failure; a fatal BatchError ends the task. When ctx
// ends, its cause says why. Then a handler that does not return soon is abandoned, unless a core.Composite.
type Handler interface {
	Execute(ctx context.Context, t Task) (Outcome, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, t Task) (Outcome, error)

// Execute calls f.
func (f HandlerFunc) Execute(ctx context.Context, t Task) (Outcome, error) { return f(ctx, t) }

// Causes that end a handler's context.
var (
	ErrCanceled = errors.New("the task was canceled")
	ErrTimeout  = errors.New("the attempt timed out")
	ErrDeadline = errors.New("the deadline of the group has passed")
	ErrStopping = errors.New("the worker stops")
)
