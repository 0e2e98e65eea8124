package conformance_test

import (
	"errors"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

type flowScenario struct {
	common            `yaml:",inline"`
	tables            `yaml:",inline"`
	Elements          *[]flowElement `yaml:"elements"`
	Runs              []flowLaunch   `yaml:"runs"`
	Concurrency       int            `yaml:"concurrency"`
	StrictTransitions bool           `yaml:"strict_transitions"`
	ExpectConfigError string         `yaml:"expect_config_error"`
	// Finally and Gate are ours: the steps after the flow, and whether the job's gate holds, launch by
	// launch.
	Finally []flowElement `yaml:"finally"`
	Gate    []bool        `yaml:"gate"`
	Derived []string      `yaml:"derived"`
}

type flowElement struct {
	Step     string `yaml:"step"`
	Decision string `yaml:"decision"`
	Split    string `yaml:"split"`
	Flow     string `yaml:"flow"`
	FlowStep string `yaml:"flow_step"`
	Atomic   string `yaml:"atomic"` // ours: a group in one transaction

	Outcome              texts            `yaml:"outcome"`
	Returns              texts            `yaml:"returns"`
	Flows                [][]flowElement  `yaml:"flows"`
	Elements             []flowElement    `yaml:"elements"`
	Next                 string           `yaml:"next"`
	On                   []flowTransition `yaml:"on"`
	AllowStartIfComplete bool             `yaml:"allow_start_if_complete"`
	StartLimit           *int             `yaml:"start_limit"`
	// TerminateOnly: at its first invocation, a stop arrives while it runs.
	TerminateOnly bool `yaml:"terminate_only"`
	Concurrency   int  `yaml:"concurrency"`

	// When and Gate are ours: the answers of its condition and of its gate,
	// question by question.
	When []bool `yaml:"when"`
	Gate []bool `yaml:"gate"`
}

type flowTransition struct {
	Match   *string `yaml:"match"`
	To      string  `yaml:"to"`
	End     bool    `yaml:"end"`
	Fail    bool    `yaml:"fail"`
	Stop    bool    `yaml:"stop"`
	Exit    string  `yaml:"exit"`
	Restart string  `yaml:"restart"`
}

type flowLaunch struct {
	On overrides `yaml:"on"`
	// FromStart is ours: the attempt continues with nothing of those before.
	FromStart bool            `yaml:"from_start"`
	Expect    flowExpectation `yaml:"expect"`
}

// overrides are transitions by element: a map, or a list with entries that
// name their step.
type overrides struct {
	byName map[string][]flowTransition
	only   []flowTransition
}

func (o *overrides) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		return decodeNode(node, &o.byName)
	}
	var list []struct {
		Step           string           `yaml:"step"`
		On             []flowTransition `yaml:"on"`
		flowTransition `yaml:",inline"`
	}
	if err := decodeNode(node, &list); err != nil {
		return err
	}
	o.byName = map[string][]flowTransition{}
	for _, entry := range list {
		transitions := entry.On
		if transitions == nil {
			transitions = []flowTransition{entry.flowTransition}
		}
		if entry.Step == "" {
			o.only = append(o.only, transitions...)
			continue
		}
		o.byName[entry.Step] = append(o.byName[entry.Step], transitions...)
	}
	return nil
}

func decodeNode(node *yaml.Node, value any) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	return strictly(text, value)
}

// flowExpectation holds the pinned values of one launch; nil means not pinned.
type flowExpectation struct {
	Executed               *[]string         `yaml:"executed"`
	ExecutedSet            *[]string         `yaml:"executed_set"`
	ExecutedLast           *string           `yaml:"executed_last"`
	StepCount              *string           `yaml:"step_count"`
	Status                 *string           `yaml:"status"`
	ExitCode               *string           `yaml:"exit_code"`
	Steps                  map[string]string `yaml:"steps"`
	Error                  *string           `yaml:"error"`
	Refused                *string           `yaml:"refused"`
	JobStatusSeenBy        map[string]string `yaml:"job_status_seen_by"`
	UniqueStepExecutionIDs *bool             `yaml:"unique_step_execution_ids"`
	// Rows and Asked are ours: the steps with a committed row, over all launches, and how often decisions and
	// conditions were asked in this one.
	Rows  *[]string         `yaml:"rows"`
	Asked map[string]string `yaml:"asked"`

	Derived []string `yaml:"derived"`
	// PeerOnly is the result of another implementation: never compared.
	PeerOnly map[string]any `yaml:"peer_only"`
}

func decodeFlow(d document) (*flowScenario, error) {
	s := &flowScenario{}
	if err := d.decode(s); err != nil {
		return nil, err
	}
	return s, s.validate()
}

func (s *flowScenario) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(s.ID == "", "it has no id")
	wrong(s.Elements == nil && s.tables.empty(), "it has neither elements nor tables")
	wrong(s.Elements != nil && (len(s.Runs) > 0) == (s.ExpectConfigError != ""), "elements are launched, or refused: one of runs and expect_config_error")
	wrong(s.Elements == nil && len(s.Runs) > 0, "runs need elements")
	errs = append(errs, s.tables.validate())
	if s.Elements != nil {
		errs = append(errs, validateElements(slices.Concat(*s.Elements, s.Finally))...)
	}
	for i, run := range s.Runs {
		if err := run.Expect.validate(); err != nil {
			errs = append(errs, fmt.Errorf("run %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

func (e *flowExpectation) validate() error {
	for _, symbol := range []*string{e.Error, e.Refused} {
		if symbol == nil || symbol == e.Refused && *symbol == "true" {
			continue
		}
		if _, known := reasons()[*symbol]; !known {
			return fmt.Errorf("error symbol %q is unknown (known: %v)", *symbol, sortedKeys(reasons()))
		}
	}
	return nil
}

func validateElements(elements []flowElement) []error {
	var errs []error
	for i, e := range elements {
		if err := e.validate(); err != nil {
			errs = append(errs, fmt.Errorf("element %d %s: %w", i+1, e.name(), err))
		}
		errs = append(errs, validateElements(e.Elements)...)
		for _, branch := range e.Flows {
			errs = append(errs, validateElements(branch)...)
		}
	}
	return errs
}

func (e *flowElement) name() string {
	for _, name := range e.names() {
		if name != "" {
			return name
		}
	}
	return ""
}

func (e *flowElement) names() []string {
	return []string{e.Step, e.Decision, e.Split, e.Flow, e.FlowStep, e.Atomic}
}

func (e *flowElement) validate() error {
	kinds := slices.DeleteFunc(e.names(), func(name string) bool { return name == "" })
	again := e.AllowStartIfComplete
	switch {
	case len(kinds) != 1:
		return errors.New("it is one of step, decision, split, flow, flow_step and atomic")
	case e.Step == "" && (e.Outcome != nil || e.TerminateOnly || e.Gate != nil):
		return errors.New("outcome, terminate_only and gate are of steps")
	case e.Step == "" && e.FlowStep == "" && e.StartLimit != nil:
		return errors.New("start_limit is of steps and flow_steps")
	case again && e.Step == "" && e.FlowStep == "":
		return errors.New("allow_start_if_complete is of steps")
	case e.Decision == "" && e.Returns != nil:
		return errors.New("returns is of decisions")
	case e.Split == "" && (e.Flows != nil || e.Concurrency != 0):
		return errors.New("flows and concurrency are of splits")
	case e.Flow == "" && e.FlowStep == "" && e.Atomic == "" && e.Elements != nil:
		return errors.New("elements are of flows")
	}
	_, err := newScript(e.Outcome)
	return err
}

func (t flowTransition) validate() error {
	targets := 0
	for _, is := range []bool{t.To != "", t.End, t.Fail, t.Stop} {
		if is {
			targets++
		}
	}
	switch {
	case t.Match == nil:
		return errors.New("a transition matches something")
	case targets != 1:
		return fmt.Errorf("transition %q leads to one of to, end, fail and stop", *t.Match)
	case t.To != "" && t.Exit != "":
		return fmt.Errorf("transition %q: exit is of end, fail and stop", *t.Match)
	case t.Restart != "" && !t.Stop:
		return fmt.Errorf("transition %q: restart is of stop", *t.Match)
	}
	return nil
}
