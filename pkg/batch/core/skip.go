package core

import (
	"encoding/json"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Phase is where an item failed.
type Phase string

// The phases.
const (
	PhaseRead    Phase = "read"
	PhaseProcess Phase = "process"
	PhaseWrite   Phase = "write"
)

// SkippedItem was left out (rule C12).
type SkippedItem struct {
	ID              int64
	JobExecutionID  JobExecutionID
	StepExecutionID StepExecutionID
	// Step is read, not stored.
	Step  string
	Phase Phase
	// Meta is zero if unknown.
	Meta item.Meta
	// Mark is the checkpoint before: opening the reader there and passing its outcomes reads the item again.
	Mark item.Position
	// Results of item.EncodePayload; Item is nil if a read failed. Truncated: it cannot be processed again.
	Item      json.RawMessage
	Truncated bool
	SHA256    string
	// Raw is an unreadable item's text, or nil; then Truncated and SHA256 concern it.
	Raw *item.RawText
	// Fault locates the mistake, in characters of Raw.
	Fault fault.Place
	// Masked: a secret was masked: it cannot be processed again.
	Masked    bool
	Class     string
	Error     string
	CreatedAt time.Time
	// RedrivenBy processed it later; 0 means none.
	RedrivenBy JobExecutionID
	// Unreadable is as in JobExecution: the item or its text.
	Unreadable error
}

// Whole is the item as read, or an unreadable one's text; nil if not stored completely (see Part).
func (s *SkippedItem) Whole() (item json.RawMessage, text *string) {
	switch {
	case s.Truncated:
		return nil, nil
	case s.Raw != nil:
		return s.Item, &s.Raw.Text
	}
	return s.Item, nil
}

// Part is a cut item's or text's stored part, or empty.
func (s *SkippedItem) Part() string {
	switch {
	case !s.Truncated:
		return ""
	case s.Raw != nil:
		return s.Raw.Text
	}
	return string(s.Item)
}
