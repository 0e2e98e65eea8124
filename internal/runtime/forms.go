package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Span is a duration as JSON text, such as "1m30s".
type Span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration, such as 1m30s", text)
	}
	*s = Span(d)
	return nil
}

// SubmitRequest is the JSON form of a submission.
type SubmitRequest struct {
	Title          string      `json:"title,omitempty"`
	Type           string      `json:"type,omitempty"`
	Decider        string      `json:"decider,omitempty"`
	IdempotencyKey string      `json:"idempotency_key,omitempty"`
	Budget         BudgetForm  `json:"budget,omitzero"`
	Tasks          []*SpecForm `json:"tasks"`
}

// BudgetForm is the JSON form of a task.Budget.
type BudgetForm struct {
	MaxAttempts      int  `json:"max_attempts,omitempty"`
	MaxTotalAttempts int  `json:"max_total_attempts,omitempty"`
	Deadline         Span `json:"deadline,omitzero"`
	MaxNoProgress    int  `json:"max_no_progress,omitempty"`
}

// SpecForm is the JSON form of a task.Spec.
type SpecForm struct {
	Type    string          `json:"type,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Title   string          `json:"title,omitempty"`
	task.Hints
	Key            string          `json:"key,omitempty"`
	After          []string        `json:"after,omitempty"`
	Priority       int             `json:"priority,omitempty"`
	On             *core.Placement `json:"on,omitempty" doc:"Which workers may execute it: an object of labels, such as {\"disk\": \"eu1\"}, or the name of a worker; without it any worker"`
	Delay          Span            `json:"delay,omitzero"`
	Timeout        Span            `json:"timeout,omitzero"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
}

// ReadSubmission reads a SubmitRequest, or a list of SpecForms. An unknown key
// is an error.
func ReadSubmission(text []byte) (task.Submission, error) {
	var req SubmitRequest
	var err error
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		err = strictly(text, &req.Tasks)
	} else {
		err = strictly(text, &req)
	}
	if err != nil {
		return task.Submission{}, refuse(refusal.Invalid, fmt.Errorf("the submission: %w", err))
	}
	return req.Submission(), nil
}

func strictly(text []byte, into any) error {
	var twoMeanings *jsontext.StrictError // the decoder reports text that is not JSON
	if err := new(jsontext.Scanner).Valid(text); errors.As(err, &twoMeanings) {
		return err
	}
	if err := unknownKeys(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // as the decoder documents it
		return fmt.Errorf("there is data after its end, at byte %d", d.InputOffset())
	}
	return nil
}

// Submission returns the submission.
func (r SubmitRequest) Submission() task.Submission {
	s := task.Submission{
		Title: r.Title, Type: r.Type, Decider: r.Decider, IdempotencyKey: r.IdempotencyKey,
		Budget: task.Budget{
			MaxAttempts: r.Budget.MaxAttempts, MaxTotalAttempts: r.Budget.MaxTotalAttempts,
			Deadline: time.Duration(r.Budget.Deadline), MaxNoProgress: r.Budget.MaxNoProgress,
		},
	}
	for _, f := range r.Tasks {
		if f == nil {
			f = &SpecForm{}
		}
		s.Tasks = append(s.Tasks, f.spec())
	}
	return s
}

// spec keeps each null: it is part of the hash that recognizes a submission
// sent again, also one stored by an older program.
func (f SpecForm) spec() task.Spec {
	return task.Spec{
		Type: f.Type, Payload: f.Payload, Title: f.Title, Hints: f.Hints, Key: f.Key, After: f.After, Priority: f.Priority, On: f.On,
		Delay: time.Duration(f.Delay), Timeout: time.Duration(f.Timeout), IdempotencyKey: f.IdempotencyKey,
	}
}

// SpecView returns the spec as JSON has it.
func SpecView(s task.Spec) SpecForm {
	return SpecForm{
		Type: s.Type, Payload: s.Payload, Title: s.Title, Hints: s.Hints, Key: s.Key, After: s.After, Priority: s.Priority, On: s.On,
		Delay: Span(s.Delay), Timeout: Span(s.Timeout), IdempotencyKey: s.IdempotencyKey,
	}
}

// TaskView is the JSON form of a task.
type TaskView struct {
	task.Task
	Spec SpecForm `json:"spec"` // replaces the task's
	// WaitsFor is why a placed task waits, in lists.
	WaitsFor string `json:"waits_for,omitempty"`
}

// ViewTask returns the view of a task.
func ViewTask(t task.Task) TaskView { return TaskView{Task: t, Spec: SpecView(t.Spec)} }

// AttemptView is the JSON form of an attempt.
type AttemptView struct {
	taskports.Attempt
	Action SpecForm `json:"action"`
}

// ViewAttempt returns the view of an attempt.
func ViewAttempt(a taskports.Attempt) AttemptView { return AttemptView{a, SpecView(a.Action)} }

// GroupView is the JSON form of a group.
type GroupView struct {
	task.Group
	Budget BudgetForm `json:"budget"`
}

// ViewGroup returns the view of a group.
func ViewGroup(g task.Group) GroupView {
	return GroupView{g, BudgetForm{g.Budget.MaxAttempts, g.Budget.MaxTotalAttempts, Span(g.Budget.Deadline), g.Budget.MaxNoProgress}}
}

// DecisionView is the JSON form of a decision.
type DecisionView struct {
	taskports.DecisionRecord
	Decision DecisionForm `json:"decision"`
}

// DecisionForm is the JSON form of a task.Decision.
type DecisionForm struct {
	Dead   bool   `json:"dead"`
	Delay  Span   `json:"delay,omitzero"`
	Reason string `json:"reason"`
}

// ViewDecision returns the view of a decision.
func ViewDecision(d taskports.DecisionRecord) DecisionView {
	return DecisionView{d, DecisionForm{d.Decision.Dead, Span(d.Decision.Delay), d.Decision.Reason}}
}

// KeyCure returns advice for a key of Weaver's submissions that one here lacks,
// or "".
func KeyCure(key string) string {
	switch key {
	case "max_attempts_per_task":
		return "write max_attempts"
	case "deadline_ms":
		return `write deadline, a text with a unit, such as "60s"`
	case "max_no_progress_steps":
		return "write max_no_progress"
	case "task_type":
		return "write type"
	}
	return ""
}

func unknownKeys(text []byte) error {
	var errs []error
	var whole map[string]json.RawMessage
	var tasks []json.RawMessage
	if json.Unmarshal(text, &tasks) != nil {
		if json.Unmarshal(text, &whole) != nil {
			return nil
		}
		errs = append(errs, unknownIn("", text, reflect.TypeFor[SubmitRequest]()), unknownIn("budget: ", whole["budget"], reflect.TypeFor[BudgetForm]()))
		if json.Unmarshal(whole["tasks"], &tasks) != nil {
			return errors.Join(errs...)
		}
	}
	for i, t := range tasks {
		errs = append(errs, unknownIn(fmt.Sprintf("tasks[%d]: ", i), t, reflect.TypeFor[SpecForm]()))
	}
	return errors.Join(errs...)
}

func unknownIn(where string, object json.RawMessage, form reflect.Type) error {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		return nil
	}
	var known, unknown []string
	for _, field := range reflect.VisibleFields(form) {
		if !field.Anonymous {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			known = append(known, name)
		}
	}
	for key := range fields {
		if !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, key) }) { // as the decoder compares
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	var errs []error
	for _, key := range unknown {
		hint := nearest.Hint(key, known)
		if cure := KeyCure(key); cure != "" {
			hint = ": " + cure
		}
		errs = append(errs, fmt.Errorf("%sunknown key %q%s", where, key, hint))
	}
	return errors.Join(errs...)
}
