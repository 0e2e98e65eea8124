package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// keptOutcome is the value stored under OutcomeKey.
type keptOutcome struct {
	Outcome core.Outcome `json:"outcome"`
	Gate    string       `json:"gate,omitempty"`
}

// maxKeptMessage bounds the message that is kept with an outcome, in bytes.
const maxKeptMessage = 8 << 10

// EncodeOutcome returns the value stored under OutcomeKey: the outcome of a flow, and the text of its
// gate.
func EncodeOutcome(out core.Outcome, gate string) (string, error) {
	if len(out.Message) > maxKeptMessage {
		out.Message = strings.ToValidUTF8(out.Message[:maxKeptMessage], "") + "…"
	}
	text, err := json.Marshal(keptOutcome{out, gate})
	if err != nil {
		return "", fmt.Errorf("store the outcome of the flow: %w", err)
	}
	return string(text), nil
}

// TakeOutcome removes the value of EncodeOutcome from the context of a parked step and returns it;
// false if there is none.
func TakeOutcome(c *core.ExecutionContext) (out core.Outcome, gate string, ok bool, err error) {
	if c == nil {
		return out, "", false, nil
	}
	stored, ok := c.Get(ports.OutcomeKey)
	if !ok {
		return out, "", false, nil
	}
	c.Delete(ports.OutcomeKey)
	var kept keptOutcome
	text, _ := stored.(string)
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return out, "", false, fmt.Errorf("the outcome of the flow in the step's context, %s: %w", ports.OutcomeKey, err)
	}
	return kept.Outcome, kept.Gate, true, nil
}
