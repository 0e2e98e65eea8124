package conformance_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// lifeExpectation holds the pinned values of one action; nil means not pinned.
type lifeExpectation struct {
	flowExpectation `yaml:",inline"`

	// Facts that one op or another answers.
	Same        *string           `yaml:"same"`
	Found       *string           `yaml:"found"`
	All         *string           `yaml:"all"`
	ToRun       *string           `yaml:"to_run"`
	Ran         *string           `yaml:"ran"`
	Succeeded   *string           `yaml:"succeeded"`
	ProcessExit *string           `yaml:"process_exit"`
	Counters    []string          `yaml:"counters"`
	Params      map[string]string `yaml:"params"`

	// Of the execution.
	Running                 *string           `yaml:"running"`
	Ended                   *string           `yaml:"ended"`
	SameInstanceAs          *string           `yaml:"same_instance_as"`
	SameParamsAs            *string           `yaml:"same_params_as"`
	ExitDescriptionContains *string           `yaml:"exit_description_contains"`
	ListenerCalls           map[string]string `yaml:"listener_calls"`
	ListenerCalled          []string          `yaml:"listener_called"`
	JobContext              *contextValues    `yaml:"job_context"`
	JobContextAtLaunch      *contextValues    `yaml:"job_context_at_launch"`
	JobContextAtStart       *stepValues       `yaml:"job_context_at_start"`
	TerminateOnly           *string           `yaml:"terminate_only"`
	StepContext             *stepValues       `yaml:"step_context"`

	// Of its steps.
	StepExitCodes           map[string]string        `yaml:"step_exit_codes"`
	ManagerExecutions       *string                  `yaml:"manager_executions"`
	PartitionExecutions     *string                  `yaml:"partition_executions"`
	StepNamesSorted         *[]string                `yaml:"step_names_sorted"`
	PartitionsRun           *string                  `yaml:"partitions_run"`
	PartitionsCompleted     *string                  `yaml:"partitions_completed"`
	StepContextAtStart      map[string]contextValues `yaml:"step_context_at_start"`
	PartitionContextAtStart map[string]contextValues `yaml:"partition_context_at_start"`
	Commits                 *string                  `yaml:"commits"`
	Rollbacks               *string                  `yaml:"rollbacks"`
	Read                    *string                  `yaml:"read"`
	Write                   *string                  `yaml:"write"`
	Filter                  *string                  `yaml:"filter"`
	Skips                   *string                  `yaml:"skips"`
	Written                 *[]string                `yaml:"written"`
	WrittenCount            *string                  `yaml:"written_count"`

	// Of the job's history.
	Executions          *string                      `yaml:"executions"`
	Instances           *string                      `yaml:"instances"`
	NewestFirst         *[]string                    `yaml:"newest_first"`
	ExecutionParams     []map[string]string          `yaml:"execution_params"`
	ParamsOf            map[string]map[string]string `yaml:"params_of"`
	WrittenTotal        *string                      `yaml:"written_total"`
	StepExecutionCount  map[string]string            `yaml:"step_execution_count"`
	LastStepExecutionOf map[string]string            `yaml:"last_step_execution_of"`

	// Of the child of a job step.
	ChildStatus     *string           `yaml:"child_status"`
	ChildExitCode   *string           `yaml:"child_exit_code"`
	ChildExecutions *string           `yaml:"child_executions"`
	ChildInstances  *string           `yaml:"child_instances"`
	ChildParams     map[string]string `yaml:"child_params"`
}

// stepValues are the contexts of steps by name, or the context of the last step that has one.
type stepValues struct {
	last   contextValues
	byName map[string]contextValues
}

func (s *stepValues) UnmarshalYAML(node *yaml.Node) error {
	if len(node.Content) > 1 && node.Content[1].Kind == yaml.MappingNode {
		return node.Decode(&s.byName)
	}
	s.last = contextValues{}
	return node.Decode(&s.last)
}

func (e *lifeExpectation) validate() error {
	return errors.Join(e.flowExpectation.validate(), oneOf("listener_calls", slices.Collect(maps.Keys(e.ListenerCalls)), lifeCallbacks()...),
		oneOf("listener_called", e.ListenerCalled, lifeCallbacks()...))
}

type seen struct {
	launched
	facts    map[string]any
	counters []int64
	params   *core.Parameters
}

func (d *differences) fact(key string, want *string, s *seen) {
	if want == nil {
		return
	}
	got, answered := s.facts[key]
	d.that(answered, key, "this op does not answer it")
	d.text(key, want, got)
}

func (r *lifeRun) problems(e *lifeExpectation, s *seen) []string {
	var d differences
	flow := e.flowExpectation
	if e.ExitDescriptionContains != nil && s.refusal != nil && flow.Error == nil {
		anything := "true" // the refusal itself is pinned
		flow.Refused = &anything
	}
	d.launch(&flow, &s.launched)
	for key, want := range map[string]*string{
		"same": e.Same, "found": e.Found, "all": e.All, "to_run": e.ToRun, "ran": e.Ran, "succeeded": e.Succeeded,
	} {
		d.fact(key, want, s)
	}
	d.processExit(e.ProcessExit, s)
	if e.Counters != nil {
		d.that(slices.Equal(e.Counters, strings.Fields(strings.Trim(fmt.Sprint(s.counters), "[]"))), "counters", "expected %v, got %v", e.Counters, s.counters)
	}
	if e.Params != nil {
		d.that(s.params != nil, "params", "this op does not answer them")
		if s.params != nil {
			d.params("params", e.Params, *s.params, true)
		}
	}
	r.execution(&d, e, s)
	r.ofSteps(&d, e, s)
	r.history(&d, e, s)
	r.child(&d, e)
	for _, name := range sortedKeys(e.JobStatusSeenBy) {
		want := e.JobStatusSeenBy[name]
		d.text("job_status_seen_by "+name, &want, r.statusSeen[name])
	}
	d.that(e.Rows == nil && e.Asked == nil, "rows, asked", "they are of family flow")
	return d
}

// processExit: the peers have one code for all failures, 1. Ours distinguish wrong usage and a refusal from a
// failure: any of the three matches.
func (d *differences) processExit(want *string, s *seen) {
	if want == nil {
		return
	}
	code, ran := s.facts["process_exit"].(int)
	d.that(ran, "process_exit", "this op runs no command line")
	if *want == "1" {
		d.that(slices.Contains([]int{cli.ExitFailed, cli.ExitUsage, cli.ExitRefused}, code), "process_exit", "expected a failure, got %d", code)
		return
	}
	d.text("process_exit", want, code)
}

func (r *lifeRun) execution(d *differences, e *lifeExpectation, s *seen) {
	if e.ExitDescriptionContains != nil {
		text := ""
		if s.exec != nil {
			text = s.exec.Error
		}
		if s.refusal != nil {
			text += s.refusal.Error()
		}
		d.that(strings.Contains(text, *e.ExitDescriptionContains), "exit_description_contains", "%q has no %q", text, *e.ExitDescriptionContains)
	}
	for _, name := range sortedKeys(e.ListenerCalls) {
		want := e.ListenerCalls[name]
		d.text("listener_calls "+name, &want, r.calls[name])
	}
	for _, name := range e.ListenerCalled {
		d.that(r.calls[name] > 0, "listener_called", "%s was not called", name)
	}
	ofExecution := e.Running != nil || e.Ended != nil || e.SameInstanceAs != nil || e.SameParamsAs != nil || e.JobContext != nil
	if s.exec == nil {
		d.that(!ofExecution, "execution", "there is none: %v", s.refusal)
		return
	}
	d.text("running", e.Running, s.exec.Status.IsRunning())
	d.text("ended", e.Ended, !s.exec.EndedAt.IsZero())
	if e.SameInstanceAs != nil {
		d.that(s.exec.InstanceID == r.record(*e.SameInstanceAs).InstanceID, "same_instance_as", "it is instance %d", s.exec.InstanceID)
	}
	if e.SameParamsAs != nil {
		got, want := s.exec.Params, r.record(*e.SameParamsAs).Params
		d.that(fmt.Sprint(got.All()) == fmt.Sprint(want.All()), "same_params_as", "expected %v, got %v", want.All(), got.All())
	}
	d.context("job_context", e.JobContext, s.exec.Context)
	d.text("terminate_only", e.TerminateOnly, s.exec.StopRequested)
	if e.JobContextAtLaunch != nil {
		d.started("job_context_at_launch", *e.JobContextAtLaunch, r.atLaunch)
	}
	if want := e.JobContextAtStart; want != nil {
		if want.last != nil {
			d.started("job_context_at_start", want.last, r.atLaunch)
		}
		for _, name := range sortedKeys(want.byName) {
			d.started("job_context_at_start "+name, want.byName[name], r.jobAtStart[name])
		}
	}
}

func (r *lifeRun) ofSteps(d *differences, e *lifeExpectation, s *seen) {
	var names []string
	var partitions, completed int
	var sum core.Counters
	for _, step := range s.steps {
		names = append(names, step.Name)
		if strings.Contains(step.Name, ":") {
			partitions++
			if step.Status == core.StatusCompleted {
				completed++
			}
			continue
		}
		sum = sum.Add(step.Counters)
	}
	d.list("step_names_sorted", e.StepNamesSorted, slices.Sorted(slices.Values(names)))
	d.text("partitions_run", e.PartitionsRun, partitions)
	d.text("partitions_completed", e.PartitionsCompleted, completed)
	for key, pair := range map[string]struct {
		want *string
		got  int64
	}{
		"commits": {e.Commits, sum.Commit}, "rollbacks": {e.Rollbacks, sum.Rollback}, "read": {e.Read, sum.Read},
		"write": {e.Write, sum.Write}, "filter": {e.Filter, sum.Filter}, "skips": {e.Skips, sum.Skips()},
	} {
		d.text(key, pair.want, pair.got)
	}
	for _, name := range sortedKeys(e.StepExitCodes) {
		step, ran := newest(s.steps, name)
		d.that(ran, "step_exit_codes", "%s did not run", name)
		want := e.StepExitCodes[name]
		d.text("step_exit_codes "+name, &want, step.ExitCode)
	}
	if e.StepContext != nil {
		r.stepContexts(d, e.StepContext, s)
	}
	for _, name := range sortedKeys(e.StepContextAtStart) {
		want := e.StepContextAtStart[name]
		d.started("step_context_at_start "+name, want, r.startedWith(name))
	}
	for _, name := range sortedKeys(e.PartitionContextAtStart) {
		want := expanded(e.PartitionContextAtStart[name], name, 0)
		d.started("partition_context_at_start "+name, want, r.startedWith(":"+name))
	}
}

func (r *lifeRun) stepContexts(d *differences, want *stepValues, s *seen) {
	if want.last != nil {
		d.that(len(s.steps) > 0, "step_context", "no step ran")
		if len(s.steps) > 0 {
			d.context("step_context", &want.last, s.steps[len(s.steps)-1].Context)
		}
	}
	for _, name := range sortedKeys(want.byName) {
		step, ran := newest(s.steps, name)
		d.that(ran, "step_context", "%s did not run", name)
		one := want.byName[name]
		d.context("step_context "+name, &one, step.Context)
	}
}

func (d *differences) context(key string, want *contextValues, got *core.ExecutionContext) {
	if want == nil {
		return
	}
	found := map[string]any{}
	if got != nil {
		for _, name := range got.Keys() {
			if !strings.HasPrefix(name, "surfin.") {
				found[name], _ = got.Get(name)
			}
		}
	}
	expected := map[string]any{}
	for name, s := range *want {
		expected[name] = s.value
	}
	d.that(maps.Equal(expected, found), key, "expected %#v, got %#v", expected, found)
}

func (d *differences) started(key string, want contextValues, got *core.ExecutionContext) {
	d.that(got != nil, key, "it did not run")
	d.context(key, &want, got)
}

func (d *differences) params(key string, want map[string]string, got core.Parameters, all bool) {
	d.that(!all || got.Len() == len(want), key, "expected %v, got %v", want, got.All())
	for _, name := range sortedKeys(want) {
		p, there := got.Get(name)
		d.that(there && fmt.Sprint(p.Value) == want[name], key, "%s: expected %s, got %v", name, want[name], p.Value)
	}
}
