package core

import (
	"encoding/json"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Phase is the part of a chunk step in which an item failed.
type Phase string

// The phases.
const (
	PhaseRead    Phase = "read"
	PhaseProcess Phase = "process"
	PhaseWrite   Phase = "write"
)

// SkippedItem is an item that was left out because of an error (rule C12).
type SkippedItem struct {
	ID              int64
	JobExecutionID  JobExecutionID
	StepExecutionID StepExecutionID
	// Step is the step's name; it is read, not stored.
	Step  string
	Phase Phase
	// Meta is the origin of the item; zero if the reader does not provide it.
	Meta item.Meta
	// Mark is the checkpoint before the item: opening the step's reader there, and passing the number
	// of outcomes in it, reads the item again.
	Mark item.Position
	// Item, Truncated and SHA256 are the results of item.EncodePayload for the item as it was read;
	// Item is nil if a read failed. Truncated means that it is incomplete and cannot be processed
	// again.
	Item      json.RawMessage
	Truncated bool
	SHA256    string
	// Raw is the text of an unreadable item; nil if the reader has none (item.RawReader). Truncated and
	// SHA256 then concern the text.
	Raw *item.RawText
	// Masked means that a secret in it was masked when it was stored: it cannot be processed again.
	Masked bool
	// Class is the class of the error, Error its text.
	Class     string
	Error     string
	CreatedAt time.Time
	// RedrivenBy is the execution that later processed the item; 0 means none.
	RedrivenBy JobExecutionID
}

// Whole returns the item as it was read, or the text of one that could not be read; nil if it was not
// stored completely. Part then returns the stored part.
func (s *SkippedItem) Whole() (item json.RawMessage, text *string) {
	switch {
	case s.Truncated:
		return nil, nil
	case s.Raw != nil:
		return s.Item, &s.Raw.Text
	}
	return s.Item, nil
}

// Part returns the stored part of an item, or of a text, that was cut; empty if it is whole, or there
// is none.
func (s *SkippedItem) Part() string {
	switch {
	case !s.Truncated:
		return ""
	case s.Raw != nil:
		return s.Raw.Text
	}
	return string(s.Item)
}
