package conformance_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

type chunkScenario struct {
	common     `yaml:",inline"`
	Items      []string `yaml:"items"`
	ItemsRange []int    `yaml:"items_range"`
	ChunkSize  int      `yaml:"chunk_size"`
	SkipLimit  limit    `yaml:"skip_limit"`
	RetryLimit int      `yaml:"retry_limit"`
	Processor  string   `yaml:"processor"`
	Mode       string   `yaml:"mode"`
	Filters    []string `yaml:"filters"`
	Faults     []fault  `yaml:"faults"`

	ErrorTypes   map[string]string `yaml:"error_types"`
	Skippable    []string          `yaml:"skippable"`
	NotSkippable []string          `yaml:"not_skippable"`
	Retryable    []string          `yaml:"retryable"`

	Restart *struct {
		Faults []fault `yaml:"faults"`
	} `yaml:"restart"`
	Expect expectation `yaml:"expect"`
}

type limit int64

func (l *limit) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "unlimited" {
		*l = math.MaxInt64
		return nil
	}
	n, err := strconv.ParseInt(node.Value, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("line %d: skip_limit %q is neither a number nor unlimited", node.Line, node.Value)
	}
	*l = limit(n)
	return nil
}

// times is how often a fault occurs; 0 means always.
type times int

func (t *times) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "always" {
		*t = 0
		return nil
	}
	n, err := strconv.Atoi(node.Value)
	if err != nil || n < 1 {
		return fmt.Errorf("line %d: times %q is neither a number nor always", node.Line, node.Value)
	}
	*t = times(n)
	return nil
}

type fault struct {
	Phase      string `yaml:"phase"`
	Callback   string `yaml:"callback"`
	Item       string `yaml:"item"`
	Times      times  `yaml:"times"`
	OnCall     []int  `yaml:"on_call"`
	Attempts   []int  `yaml:"attempts"`
	MinBatch   int    `yaml:"min_batch"`
	ErrorClass string `yaml:"error_class"`
	Error      string `yaml:"error"`
	Wrapped    bool   `yaml:"wrapped"`
}

const (
	phaseRead     = "read"
	phaseProcess  = "process"
	phaseWrite    = "write"
	phaseListener = "listener"
)

const anyItem = "*"

const (
	sequential = "sequential"
	concurrent = "concurrent"
	replay     = "replay"
	cached     = "cached"
)

// expectation holds the pinned values; nil means not pinned.
type expectation struct {
	Status   *string `yaml:"status"`
	ExitCode *string `yaml:"exit_code"`
	Error    *string `yaml:"error"`

	Read        *string `yaml:"read"`
	Write       *string `yaml:"write"`
	Filter      *string `yaml:"filter"`
	ReadSkip    *string `yaml:"read_skip"`
	ProcessSkip *string `yaml:"process_skip"`
	WriteSkip   *string `yaml:"write_skip"`
	Skips       *string `yaml:"skips"`
	Commits     *string `yaml:"commits"`
	CommitsMin  *int64  `yaml:"commits_min"`
	Rollbacks   *string `yaml:"rollbacks"`

	Written          *[]string   `yaml:"written"`
	WrittenCount     *string     `yaml:"written_count"`
	ReadItems        *[]string   `yaml:"read_items"`
	ReadCalls        *string     `yaml:"read_calls"`
	ProcessCalls     *[]string   `yaml:"process_calls"`
	ProcessCallCount *string     `yaml:"process_call_count"`
	WriteCalls       *[][]string `yaml:"write_calls"`
	WriteCallCount   *string     `yaml:"write_call_count"`
	WriteItemCount   *string     `yaml:"write_item_count"`
	WriteTouch       *[]string   `yaml:"write_touch"`
	SkippedItems     *[]string   `yaml:"skipped_items"`

	ListenerCalls  map[string]countOrList `yaml:"listener_calls"`
	ListenerCalled []string               `yaml:"listener_called"`
	ListenerTrail  *[]string              `yaml:"listener_trail"`
	StreamCalls    *streamCalls           `yaml:"stream_calls"`

	ClassifiedSkippable *string      `yaml:"classified_skippable"`
	AfterRestart        *expectation `yaml:"after_restart"`
	ResumeAt            *string      `yaml:"resume_at"`

	// Derived names keys that were inferred.
	Derived []string `yaml:"derived"`
	// PeerOnly is the result of another implementation: never compared.
	PeerOnly map[string]any `yaml:"peer_only"`
}

type countOrList struct {
	count string
	list  *[]string
}

func (c *countOrList) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		c.list = new([]string)
		return node.Decode(c.list)
	}
	return node.Decode(&c.count)
}

type streamCalls struct {
	counts map[string]string
	trail  *[]string
}

func (s *streamCalls) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		s.trail = new([]string)
		return node.Decode(s.trail)
	}
	return node.Decode(&s.counts)
}

func (s streamCalls) names() []string {
	if s.trail != nil {
		return *s.trail
	}
	return slices.Collect(maps.Keys(s.counts))
}

func streamNames() []string { return []string{"open", "update", "close"} }

func decodeChunk(d document) (*chunkScenario, error) {
	s := &chunkScenario{Processor: replay, Mode: sequential}
	if err := d.decode(s); err != nil {
		return nil, err
	}
	if len(s.ItemsRange) == 2 && s.Items == nil {
		for i := s.ItemsRange[0]; i <= s.ItemsRange[1]; i++ {
			s.Items = append(s.Items, strconv.Itoa(i))
		}
	} else if s.ItemsRange != nil {
		return nil, errors.New("items_range is [first, last], and stands in place of items")
	}
	return s, s.validate()
}

func (s *chunkScenario) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(s.ID == "", "it has no id")
	wrong(s.ChunkSize < 1, "chunk_size %d is less than 1", s.ChunkSize)
	wrong(s.RetryLimit < 0, "retry_limit %d is less than 0", s.RetryLimit)
	wrong(!slices.Contains([]string{replay, cached}, s.Processor), "processor %q is unknown", s.Processor)
	wrong(!slices.Contains([]string{sequential, concurrent}, s.Mode), "mode %q is unknown", s.Mode)
	wrong((s.Expect.AfterRestart != nil) != (s.Restart != nil), "restart and after_restart belong together")
	wrong(s.Expect.ResumeAt != nil, "resume_at is of the second launch")
	faults := s.Faults
	if s.Restart != nil {
		faults = slices.Concat(faults, s.Restart.Faults)
	}
	for i, f := range faults {
		if err := f.validate(); err != nil {
			errs = append(errs, fmt.Errorf("fault %d: %w", i+1, err))
		}
	}
	errs = append(errs, s.Expect.validate())
	if again := s.Expect.AfterRestart; again != nil {
		wrong(again.AfterRestart != nil, "there is one restart, not two")
		errs = append(errs, again.validate())
	}
	return errors.Join(errs...)
}

func (f fault) validate() error {
	switch {
	case !slices.Contains([]string{phaseRead, phaseProcess, phaseWrite, phaseListener}, f.Phase):
		return fmt.Errorf("phase %q is unknown", f.Phase)
	case (f.Phase == phaseListener) != (f.Callback != ""):
		return errors.New("listener faults, and no others, name a callback")
	case f.Callback != "" && f.Callback != skipPolicy && !slices.Contains(callbacks(), f.Callback):
		return fmt.Errorf("callback %q is unknown", f.Callback)
	case !slices.Contains([]string{"skippable", "retryable", "both", "fatal"}, f.ErrorClass):
		return fmt.Errorf("error_class %q is unknown", f.ErrorClass)
	case f.MinBatch > 0 && f.Phase != phaseWrite:
		return errors.New("min_batch is of phase write")
	case f.Item == "" && f.Phase != phaseListener:
		return errors.New("it names no item")
	}
	return nil
}

func (e *expectation) validate() error {
	var errs []error
	names := slices.Concat(slices.Collect(maps.Keys(e.ListenerCalls)), e.ListenerCalled)
	if e.ListenerTrail != nil {
		names = append(names, *e.ListenerTrail...)
	}
	for _, name := range names {
		if !slices.Contains(callbacks(), name) {
			errs = append(errs, fmt.Errorf("callback %q is unknown", name))
		}
	}
	if e.StreamCalls != nil {
		for _, name := range e.StreamCalls.names() {
			if !slices.Contains(streamNames(), name) {
				errs = append(errs, fmt.Errorf("stream call %q is unknown (known: %v)", name, streamNames()))
			}
		}
	}
	if e.Error != nil && !slices.Contains(symbols(), *e.Error) {
		errs = append(errs, fmt.Errorf("error symbol %q is unknown (known: %v)", *e.Error, symbols()))
	}
	return errors.Join(errs...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
