package conformance_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type lifeScenario struct {
	common  `yaml:",inline"`
	tables  `yaml:",inline"`
	Job     *lifeJob `yaml:"job"`
	Actions []action `yaml:"actions"`
	Derived []string `yaml:"derived"`
}

type lifeJob struct {
	Name           string      `yaml:"name"`
	Restartable    *bool       `yaml:"restartable"`
	Incrementer    string      `yaml:"incrementer"`
	RequiredParams []string    `yaml:"required_params"`
	OptionalParams *[]string   `yaml:"optional_params"`
	Steps          *[]lifeStep `yaml:"steps"`
	ListenerThrows texts       `yaml:"listener_throws"`
}

// lifeStep is a step: of items if it has any or fails at them, of partitions, of a child job, or else one
// that follows its outcome.
type lifeStep struct {
	Name                 string `yaml:"name"`
	Outcome              texts  `yaml:"outcome"`
	AllowStartIfComplete bool   `yaml:"allow_start_if_complete"`
	StartLimit           *int   `yaml:"start_limit"`

	PutsStepContext     contextValues       `yaml:"puts_step_context"`
	PutsJobContext      contextValues       `yaml:"puts_job_context"`
	StepContextSequence map[string][]scalar `yaml:"step_context_sequence"`
	Promote             *lifePromotion      `yaml:"promote"`

	Items         []string    `yaml:"items"`
	ItemsRange    []int       `yaml:"items_range"`
	ChunkSize     int         `yaml:"chunk_size"`
	SkipLimit     limit       `yaml:"skip_limit"`
	RetryLimit    int         `yaml:"retry_limit"`
	Faults        []lifeFault `yaml:"faults"`
	StreamThrows  texts       `yaml:"stream_throws"`
	TxThrows      texts       `yaml:"tx_throws"`
	ListenerThrow texts       `yaml:"listener_throws"`
	ItemsCount    *int        `yaml:"items_count"`
	Fault         *lifeFault  `yaml:"fault"`
	RepoThrows    *repoThrow  `yaml:"repo_throws"`
	// TerminateOnly: a stop request arrives while the step runs for the first time.
	TerminateOnly   bool   `yaml:"terminate_only"`
	TerminateOnlyIn string `yaml:"terminate_only_in"`
	Listeners       texts  `yaml:"listeners"`

	Partitions           *partNames       `yaml:"partitions"`
	PartitionContext     contextValues    `yaml:"partition_context"`
	PartitionOutcome     map[string]texts `yaml:"partition_outcome"`
	PartitionPutsContext contextValues    `yaml:"partition_puts_context"`
	ItemsPerPartition    int              `yaml:"items_per_partition"`
	Workers              int              `yaml:"workers"`

	ChildJob *childJob `yaml:"child_job"`

	allParts bool // a restart runs the partitions as well that completed
}

type childJob struct {
	lifeJob `yaml:",inline"`
	Outcome texts      `yaml:"outcome"` // of its only step
	Params  parameters `yaml:"params"`
}

type lifePromotion struct {
	Keys     promoted `yaml:"keys"`
	Statuses []string `yaml:"statuses"`
	Strict   bool     `yaml:"strict"`
}

type promoted map[string]string

func (p *promoted) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode {
		return node.Decode((*map[string]string)(p))
	}
	var keys []string
	if err := node.Decode(&keys); err != nil {
		return err
	}
	*p = promoted{}
	for _, key := range keys {
		(*p)[key] = key
	}
	return nil
}

type partNames []string

func (p *partNames) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return node.Decode((*[]string)(p))
	}
	n, err := strconv.Atoi(node.Value)
	if err != nil || n < 0 {
		return fmt.Errorf("line %d: partitions %q is neither a list of names nor a number", node.Line, node.Value)
	}
	*p = numbered(n)
	return nil
}

func numbered(n int) partNames {
	names := partNames{}
	for i := range n {
		names = append(names, fmt.Sprintf("partition%d", i))
	}
	return names
}

// lifeFault is a failure at an item, or at the one with an index from 1, of some
// partitions or of all.
type lifeFault struct {
	Partition  string   `yaml:"partition"`
	Partitions []string `yaml:"partitions"`
	Phase      string   `yaml:"phase"`
	Index      *int     `yaml:"index"`
	Item       string   `yaml:"item"`
	Times      times    `yaml:"times"`
	OnCall     []int    `yaml:"on_call"`
	Attempts   []int    `yaml:"attempts"`
	MinBatch   int      `yaml:"min_batch"`
	ErrorClass string   `yaml:"error_class"`
	Wrapped    bool     `yaml:"wrapped"`
}

// validate: an index counts from 1, and belongs to an existing item.
func (f *lifeFault) validate(s *lifeStep) error {
	phased := slices.Contains([]string{phaseRead, phaseProcess, phaseWrite}, f.Phase)
	first, last := f.first(s), f.first(s)+len(s.list())-1
	switch {
	case !phased || (f.Index == nil) == (f.Item == ""):
		return errors.New("a fault has a phase, and an index or an item")
	case f.Index != nil && (*f.Index < first || *f.Index > last):
		return fmt.Errorf("a fault's index is %d, and the step has the items %d to %d", *f.Index, first, last)
	case f.Index != nil && f.Partition != "" && s.isDealt() && !slices.Contains(s.itemsOf(core.PartName(s.Name, f.Partition)), s.list()[*f.Index-first]):
		return fmt.Errorf("a fault's index is %d, and that item is not one of partition %s", *f.Index, f.Partition)
	}
	return nil
}

// first is the index of the first item: 1, but 0 for the fault of a partition in a list that is dealt out,
// for which the index counts over the whole list.
func (f *lifeFault) first(s *lifeStep) int {
	if s.isDealt() && (f.Partition != "" || f.Partitions != nil) {
		return 0
	}
	return 1
}

func (s *lifeStep) faults() []lifeFault {
	if s.Fault == nil {
		return s.Faults
	}
	return append(slices.Clone(s.Faults), *s.Fault)
}

type scalar struct{ value any }

func (s *scalar) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: a value is expected", node.Line)
	}
	kind, text := typeOf(node)
	value, err := core.ParseParameter(kind, text)
	s.value = value
	return err
}

type contextValues map[string]scalar

func typeOf(node *yaml.Node) (core.ParameterType, string) {
	switch node.Tag {
	case "!!int":
		return core.TypeInt, node.Value
	case "!!float":
		return core.TypeFloat, node.Value
	case "!!bool":
		return core.TypeBool, node.Value
	case "!!null":
		return core.TypeString, ""
	}
	return core.TypeString, node.Value
}

// parameter is identifying unless it says otherwise.
type parameter struct {
	kind           core.ParameterType
	text           string
	nonIdentifying bool
}

func (p *parameter) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode {
		var long struct {
			V           yaml.Node `yaml:"v"`
			Identifying *bool     `yaml:"identifying"`
		}
		if err := decodeNode(node, &long); err != nil {
			return err
		}
		p.nonIdentifying = long.Identifying != nil && !*long.Identifying
		node = &long.V
	}
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: the value of a parameter is expected", node.Line)
	}
	p.kind, p.text = typeOf(node)
	return nil
}

type parameters map[string]parameter

func (ps parameters) specs() (specs []core.ParameterSpec, given map[string]string) {
	given = map[string]string{}
	for _, name := range sortedKeys(ps) {
		p := ps[name]
		if p.kind == "" { // nothing is written there: an empty text
			p.kind = core.TypeString
		}
		specs = append(specs, core.ParameterSpec{Name: name, Type: p.kind, Identifying: !p.nonIdentifying})
		given[name] = p.text
	}
	return specs, given
}

func decodeLife(d document) (*lifeScenario, error) {
	s := &lifeScenario{}
	if err := d.decode(s); err != nil {
		return nil, err
	}
	return s, s.validate()
}

func (s *lifeScenario) validate() error {
	var errs []error
	if s.ID == "" {
		errs = append(errs, errors.New("it has no id"))
	}
	if len(s.Actions) == 0 && s.tables.empty() {
		errs = append(errs, errors.New("it has neither actions nor tables"))
	}
	errs = append(errs, s.tables.validate())
	if s.Job != nil {
		errs = append(errs, s.Job.validate())
	}
	for i := range s.Actions {
		if err := s.Actions[i].validate(); err != nil {
			errs = append(errs, fmt.Errorf("action %d %s: %w", i+1, s.Actions[i].Op, err))
		}
	}
	return errors.Join(errs...)
}

func (j *lifeJob) validate() error {
	errs := []error{oneOf("listener_throws", j.ListenerThrows, "before_job", "after_job")}
	if j.Steps == nil {
		return errors.Join(errs...)
	}
	for i := range *j.Steps {
		if err := (*j.Steps)[i].validate(); err != nil {
			errs = append(errs, fmt.Errorf("step %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

const noWorkFound = "no_work_found"

func lifeCallbacks() []string {
	return []string{"before_job", "after_job", "before_step", "after_step"}
}

func (s *lifeStep) validate() error {
	errs := []error{
		oneOf("listener_throws", s.ListenerThrow, lifeCallbacks()...),
		oneOf("stream_throws", s.StreamThrows, "open", "update", "close"),
		oneOf("listeners", s.Listeners, noWorkFound), s.RepoThrows.validate(),
		oneOf("tx_throws", s.TxThrows, "commit", "rollback", "commit_rolled_back"),
	}
	if s.Name == "" {
		errs = append(errs, errors.New("it has no name"))
	}
	parted := s.PartitionContext != nil || s.PartitionOutcome != nil || s.PartitionPutsContext != nil || s.ItemsPerPartition != 0
	if s.Partitions == nil && parted {
		errs = append(errs, errors.New("what is of partitions needs partitions"))
	}
	if s.ChildJob != nil && (s.Partitions != nil || s.hasItems()) {
		errs = append(errs, errors.New("child_job excludes items and partitions"))
	}
	for _, outcome := range append(slices.Collect(maps.Values(s.PartitionOutcome)), s.Outcome) {
		if _, err := newScript(outcome); err != nil {
			errs = append(errs, err)
		}
	}
	if s.TerminateOnlyIn != "" {
		errs = append(errs, oneOf("terminate_only_in", []string{s.TerminateOnlyIn}, "before_step", "after_step"))
	}
	for _, f := range s.faults() {
		errs = append(errs, f.validate(s))
	}
	if s.ChildJob != nil {
		errs = append(errs, s.ChildJob.validate())
	}
	return errors.Join(errs...)
}

func (s *lifeStep) hasItems() bool {
	return s.Items != nil || s.ItemsRange != nil || s.ItemsCount != nil || s.Fault != nil || s.ChunkSize != 0 || s.ItemsPerPartition != 0 ||
		s.Faults != nil || s.StreamThrows != nil || s.TxThrows != nil
}

func (s *lifeStep) isDealt() bool {
	return s.Partitions != nil && (s.Items != nil || s.ItemsRange != nil || s.ItemsCount != nil)
}

// itemsOf are the items of a step, or of the partition with the name: a list of a step with partitions is
// dealt out in runs that are equal, or longer by one item for the first ones.
func (s *lifeStep) itemsOf(name string) []string {
	list := s.list()
	if !s.isDealt() {
		return list
	}
	n, all := len(*s.Partitions), len(list)
	for i, part := range *s.Partitions {
		size := all / n
		if i < all%n {
			size++
		}
		if core.PartName(s.Name, part) == name {
			return list[:size]
		}
		list = list[size:]
	}
	return nil
}

func (s *lifeStep) list() []string {
	switch {
	case s.Items != nil:
		return s.Items
	case len(s.ItemsRange) == 2:
		var list []string
		for i := s.ItemsRange[0]; i <= s.ItemsRange[1]; i++ {
			list = append(list, strconv.Itoa(i))
		}
		return list
	}
	var list []string
	if s.ItemsCount != nil {
		for i := range *s.ItemsCount {
			list = append(list, strconv.Itoa(i+1))
		}
		return list
	}
	for i := range max(s.ItemsPerPartition, 1) {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

func oneOf(key string, list []string, known ...string) error {
	for _, text := range list {
		if !slices.Contains(known, text) {
			return fmt.Errorf("%s: %q is unknown (known: %v)", key, text, known)
		}
	}
	return nil
}
