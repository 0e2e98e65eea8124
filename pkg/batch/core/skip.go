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
	// Meta is where the item came from; zero if the reader does not say.
	Meta item.Meta
	// Mark is the checkpoint before the item: opening the step's reader there, and
	// passing as many outcomes as it says, reads the item again.
	Mark item.Position
	// Item, Truncated and SHA256 are what item.EncodePayload made of the item as it
	// was read; Item is nil where a read failed. Truncated says that it is not the
	// whole item, and cannot be processed again as it is.
	Item      json.RawMessage
	Truncated bool
	SHA256    string
	// Raw is the text of an item whose read failed; nil where the reader has none
	// (item.RawReader). Truncated and SHA256 are then about the text.
	Raw *item.RawText
	// Masked says that a secret in it was masked when it was stored: as it is, it cannot be processed
	// again.
	Masked bool
	// Class is the class of the error, Error its text.
	Class     string
	Error     string
	CreatedAt time.Time
	// RedrivenBy is the execution that processed the item after all; 0: none did.
	RedrivenBy JobExecutionID
}

// Whole returns the item as it was read, or the text of one that could not be read; nil: it
// was not stored, or not all of it. Part is then what is stored of it.
func (s *SkippedItem) Whole() (item json.RawMessage, text *string) {
	switch {
	case s.Truncated:
		return nil, nil
	case s.Raw != nil:
		return s.Item, &s.Raw.Text
	}
	return s.Item, nil
}

// Part returns what is stored of an item, or of a text, that was cut; empty: it is whole, or
// there is nothing.
func (s *SkippedItem) Part() string {
	switch {
	case !s.Truncated:
		return ""
	case s.Raw != nil:
		return s.Raw.Text
	}
	return string(s.Item)
}
