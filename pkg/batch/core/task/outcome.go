package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// OutcomeKind of an attempt.
type OutcomeKind string

// The kinds of outcomes.
const (
	OutcomeSuccess OutcomeKind = "SUCCESS"
	OutcomeFailure OutcomeKind = "FAILURE" // may be tried again
	OutcomeBlocked OutcomeKind = "BLOCKED" // cannot continue without help
)

// Outcome of an attempt: build it with Success, Failure or Blocked.
type Outcome struct {
	Kind      OutcomeKind `json:"kind"`
	Artifacts []Artifact  `json:"artifacts,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	// RetryHint is a JSON object; the default decider reads backoff_ms or delay_ms.
	RetryHint    json.RawMessage   `json:"retry_hint,omitempty"`
	Alternatives []json.RawMessage `json:"alternatives,omitempty"`
	Fatal        bool              `json:"fatal,omitempty"`
	// TimedOut is set by the worker.
	TimedOut bool `json:"timed_out,omitempty"`
}

// Success is of an attempt that did its work.
func Success() Outcome { return Outcome{Kind: OutcomeSuccess} }

// Failure may be tried again.
func Failure(reason string) Outcome { return Outcome{Kind: OutcomeFailure, Reason: reason} }

// Blocked cannot continue without help.
func Blocked(reason string) Outcome { return Outcome{Kind: OutcomeBlocked, Reason: reason} }

// WithArtifact adds an artifact.
func (o Outcome) WithArtifact(a Artifact) Outcome {
	o.Artifacts = append(slices.Clone(o.Artifacts), a)
	return o
}

// WithReason sets the reason.
func (o Outcome) WithReason(reason string) Outcome {
	o.Reason = reason
	return o
}

// WithRetryHint sets a hint, such as `{"backoff_ms": 1000}`.
func (o Outcome) WithRetryHint(hint json.RawMessage) Outcome {
	o.RetryHint = slices.Clone(hint)
	return o
}

// WithAlternative adds another way.
func (o Outcome) WithAlternative(way json.RawMessage) Outcome {
	o.Alternatives = append(slices.Clone(o.Alternatives), slices.Clone(way))
	return o
}

// Check reports values that cannot be stored.
func (o Outcome) Check() error {
	if !slices.Contains([]OutcomeKind{OutcomeSuccess, OutcomeFailure, OutcomeBlocked}, o.Kind) {
		return fmt.Errorf("kind: it is %q (allowed: SUCCESS, FAILURE or BLOCKED)", o.Kind)
	}
	for i, a := range o.Artifacts {
		if err := a.check(); err != nil {
			return fmt.Errorf("artifact %d: %w", i, err)
		}
	}
	if len(o.RetryHint) > 0 && !isJSON(o.RetryHint) {
		return fmt.Errorf("retry_hint: it is not JSON in UTF-8")
	}
	for i, way := range o.Alternatives {
		if !isJSON(way) {
			return fmt.Errorf("alternative %d: it is not JSON in UTF-8", i)
		}
	}
	return nil
}

func (o Outcome) hintedDelay() (time.Duration, bool) {
	var hint struct {
		Backoff *float64 `json:"backoff_ms"`
		Delay   *float64 `json:"delay_ms"`
	}
	if len(o.RetryHint) == 0 || json.Unmarshal(o.RetryHint, &hint) != nil {
		return 0, false
	}
	ms := hint.Backoff
	if ms == nil {
		ms = hint.Delay
	}
	if ms == nil || *ms < 0 {
		return 0, false
	}
	return time.Duration(min(*ms, maxHint.Seconds()*1000) * float64(time.Millisecond)), true
}

const maxHint = 365 * 24 * time.Hour

// ArtifactKind is the kind of an artifact.
type ArtifactKind string

// The kinds of artifacts.
const (
	KindStdout   ArtifactKind = "Stdout"
	KindStderr   ArtifactKind = "Stderr"
	KindFilePath ArtifactKind = "FilePath"
	KindURL      ArtifactKind = "Url"
	KindJSON     ArtifactKind = "Json"
)

// Artifact was made or seen by an attempt; JSON {"kind", "value"}.
type Artifact struct {
	Kind ArtifactKind
	Text string          // of every kind but KindJSON
	JSON json.RawMessage // of KindJSON
}

// Stdout is standard output.
func Stdout(text string) Artifact { return Artifact{Kind: KindStdout, Text: text} }

// Stderr is standard error.
func Stderr(text string) Artifact { return Artifact{Kind: KindStderr, Text: text} }

// FilePath names a file.
func FilePath(path string) Artifact { return Artifact{Kind: KindFilePath, Text: path} }

// URL names a page.
func URL(url string) Artifact { return Artifact{Kind: KindURL, Text: url} }

// JSON is a value.
func JSON(value json.RawMessage) Artifact { return Artifact{Kind: KindJSON, JSON: value} }

// IsLog reports whether it is log text.
func (a Artifact) IsLog() bool { return a.Kind == KindStdout || a.Kind == KindStderr }

func (a Artifact) check() error {
	switch a.Kind {
	case KindStdout, KindStderr, KindFilePath, KindURL:
		return nil
	case KindJSON:
		if !isJSON(a.JSON) {
			return fmt.Errorf("its value is not JSON in UTF-8")
		}
		return nil
	}
	return fmt.Errorf("its kind is %q (allowed: Stdout, Stderr, FilePath, Url or Json)", a.Kind)
}

type artifactJSON struct {
	Kind  ArtifactKind    `json:"kind"`
	Value json.RawMessage `json:"value"`
}

// MarshalJSON replaces bytes that are not UTF-8.
func (a Artifact) MarshalJSON() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Kind == KindJSON {
		return json.Marshal(artifactJSON{a.Kind, a.JSON})
	}
	value, err := json.Marshal(strings.ToValidUTF8(a.Text, "\uFFFD"))
	if err != nil {
		return nil, err
	}
	return json.Marshal(artifactJSON{a.Kind, value})
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Artifact) UnmarshalJSON(data []byte) error {
	var form artifactJSON
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*a = Artifact{Kind: form.Kind}
	if form.Kind == KindJSON {
		a.JSON = form.Value
	} else if err := json.Unmarshal(form.Value, &a.Text); err != nil {
		return fmt.Errorf("artifact %s: %w", form.Kind, err)
	}
	return a.check()
}
