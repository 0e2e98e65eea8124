package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Placement restricts workers: one by name, or those with all labels; zero allows all. JSON: the name as text,
// or labels as object.
type Placement struct {
	// Worker is the name, as 'surfin tasks workers' shows it, or a label "name".
	Worker string
	// Labels must all match.
	Labels map[string]string
}

// NameLabel names a worker beyond its process's life.
const NameLabel = "name"

// The limits of labels.
const (
	maxLabels     = 20
	maxLabelBytes = 100
)

// IsZero reports whether all workers are allowed.
func (p Placement) IsZero() bool { return p.Worker == "" && len(p.Labels) == 0 }

// Fits reports whether the worker is allowed.
func (p Placement) Fits(worker string, labels map[string]string) bool {
	if p.Worker != "" && p.Worker != worker && p.Worker != labels[NameLabel] {
		return false
	}
	for key, value := range p.Labels {
		if have, is := labels[key]; !is || have != value {
			return false
		}
	}
	return true
}

// Check reports all errors.
func (p Placement) Check() error {
	switch {
	case p.Worker != "" && len(p.Labels) > 0:
		return errors.New("it names a worker and labels: set one of them")
	case len(p.Worker) > maxLabelBytes || strings.ContainsFunc(p.Worker, isControl):
		return fmt.Errorf("%q is not the name of a worker: at most %d bytes without control characters", p.Worker, maxLabelBytes)
	}
	return CheckLabels(p.Labels)
}

// CheckLabels reports all errors in labels.
func CheckLabels(labels map[string]string) error {
	var errs []error
	if len(labels) > maxLabels {
		errs = append(errs, fmt.Errorf("%d labels are more than the %d allowed", len(labels), maxLabels))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !isLabel(key) {
			errs = append(errs, fmt.Errorf("%q cannot be the key of a label: letters, digits and _ - . /, 1 to %d of them", key, maxLabelBytes))
		}
		if !isLabel(labels[key]) {
			errs = append(errs, fmt.Errorf("%q cannot be the value of the label %s: letters, digits and _ - . /, 1 to %d of them", labels[key], key, maxLabelBytes))
		}
	}
	return errors.Join(errs...)
}

func isLabel(text string) bool {
	return text != "" && len(text) <= maxLabelBytes && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-./", c)
	})
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f || c == '\uFFFD' }

// ParseLabels reads and checks KEY=VALUE.
func ParseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range texts {
		key, value, is := strings.Cut(text, "=")
		if !is {
			return nil, fmt.Errorf("%q is not KEY=VALUE, such as disk=eu1", text)
		}
		if _, twice := labels[key]; twice {
			return nil, fmt.Errorf("the label %s is given twice", key)
		}
		labels[key] = value
	}
	return labels, CheckLabels(labels)
}

// LabelsText is for display: "disk=eu1, zone=a".
func LabelsText(labels map[string]string) string {
	texts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, ", ")
}

// String is for display: "disk=eu1", or "worker NAME".
func (p Placement) String() string {
	if p.Worker != "" {
		return "worker " + p.Worker
	}
	return LabelsText(p.Labels)
}

// MarshalJSON writes the form of the API and the tables.
func (p Placement) MarshalJSON() ([]byte, error) {
	if p.Worker != "" {
		return json.Marshal(p.Worker)
	}
	if p.Labels == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(p.Labels)
}

// UnmarshalJSON reads a name or labels.
func (p *Placement) UnmarshalJSON(text []byte) error {
	*p = Placement{}
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &p.Worker)
	}
	if err := json.Unmarshal(text, &p.Labels); err != nil {
		return errors.New(`it is the name of a worker, such as "eu1-a", or labels with texts as values, such as {"disk": "eu1"}`)
	}
	return nil
}

// Stored is the table's text; empty allows all.
func (p *Placement) Stored() string {
	if p == nil || p.IsZero() {
		return ""
	}
	text, err := p.MarshalJSON()
	if err != nil {
		return ""
	}
	return string(text)
}
