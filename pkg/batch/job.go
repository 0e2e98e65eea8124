package batch

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Job is a job in Go. Its methods add to it; [CheckJobs] and [New] report all mistakes together. It is not safe
// for concurrent use while it grows.
type Job struct {
	name        string
	description string
	database    string
	timezone    string
	timeout     time.Duration
	incrementer string
	inherit     []string
	expect      string
	once        bool
	schedule    *Schedule
	budget      Budget
	on          *core.Placement
	exclusive   string
	parameters  []Parameter
	calendars   []Calendar
	listeners   []Component
	flow        Flow
	finally     *Flow
}

// NewJob begins a job in Go; [Jobs] registers it. The name begins with a letter and has letters, digits, _ - and .
func NewJob(name string) *Job { return &Job{name: name} }

// Name returns the job's name.
func (j *Job) Name() string { return j.name }

// Describe sets the job's description.
func (j *Job) Describe(text string) *Job {
	j.description = text
	return j
}

// Database names the default database of components; the default is "default".
func (j *Job) Database(name string) *Job {
	j.database = name
	return j
}

// Timezone names the IANA time zone of the job; the default is UTC.
func (j *Job) Timezone(name string) *Job {
	j.timezone = name
	return j
}

// Timeout limits a flow's execution; after it the execution is FAILED.
func (j *Job) Timeout(d time.Duration) *Job {
	j.timeout = d
	return j
}

// Parameter declares a parameter.
func (j *Job) Parameter(p Parameter) *Job {
	j.parameters = append(j.parameters, p)
	return j
}

// Calendar declares a calendar for is_business_day and business_day.
func (j *Job) Calendar(c Calendar) *Job {
	j.calendars = append(j.calendars, c)
	return j
}

// Incrementer names the parameter that makes the next instance: an int plus one, a date plus a day.
func (j *Job) Incrementer(parameter string) *Job {
	j.incrementer = parameter
	return j
}

// Inherit names parameters that the next instance, and a resumed one, take from the last execution.
func (j *Job) Inherit(parameters ...string) *Job {
	j.inherit = append(j.inherit, parameters...)
	return j
}

// NotRestartable makes a failed instance not restartable.
func (j *Job) NotRestartable() *Job {
	j.once = true
	return j
}

// Schedule says when a server starts the job.
func (j *Job) Schedule(s Schedule) *Job {
	j.schedule = &s
	return j
}

// Budget limits the cost of a run that a server starts.
func (j *Job) Budget(b Budget) *Job {
	j.budget = b
	return j
}

// On selects the workers that run the job where it is registered (rule PL1).
func (j *Job) On(p core.Placement) *Job {
	j.on = &p
	return j
}

// Exclusive sets which runs exclude each other: instance, job, or an expression over params with
// the same value.
func (j *Job) Exclusive(key string) *Job {
	j.exclusive = key
	return j
}

// Expect sets a condition on the completed flow; else the job is FAILED with
// EXPECT_FAILED.
func (j *Job) Expect(condition string) *Job {
	j.expect = condition
	return j
}

// Listeners adds listeners for the start and the end of an execution.
func (j *Job) Listeners(list ...Component) *Job {
	j.listeners = append(j.listeners, list...)
	return j
}

// Finally sets steps that run after the flow in every execution, whatever its status.
func (j *Job) Finally(steps *Flow) *Job {
	j.finally = steps
	return j
}

// Step adds a step; see [Flow.Step].
func (j *Job) Step(name string, work Work, with ...With) *Job {
	j.flow.Step(name, work, with...)
	return j
}

// Decide adds a decision by conditions; see [Flow.Decide].
func (j *Job) Decide(name string, choices ...Choice) *Job {
	j.flow.Decide(name, choices...)
	return j
}

// DecideBy adds a decision by a component; see [Flow.DecideBy].
func (j *Job) DecideBy(name string, decider Component, with ...With) *Job {
	j.flow.DecideBy(name, decider, with...)
	return j
}

// Split adds flows that run in parallel; see [Flow.Split].
func (j *Job) Split(name string, branches []*Flow, with ...With) *Job {
	j.flow.Split(name, branches, with...)
	return j
}

// Flow adds a nested flow; see [Flow.Flow].
func (j *Job) Flow(name string, inner *Flow, with ...With) *Job {
	j.flow.Flow(name, inner, with...)
	return j
}

// Atomic adds steps in one transaction; see [Flow.Atomic].
func (j *Job) Atomic(name string, steps *Flow, with ...With) *Job {
	j.flow.Atomic(name, steps, with...)
	return j
}

// Child adds another job; see [Flow.Child].
func (j *Job) Child(name string, child *Job, parameters map[string]string, with ...With) *Job {
	j.flow.Child(name, child, parameters, with...)
	return j
}

// Parameter declares a parameter of a job.
type Parameter struct {
	Name string
	Type ParameterType
	Doc  string
	// Default is of the Go type of Type, or a text such as ${today()}; nil means none.
	Default        any
	Optional       bool
	NotIdentifying bool
	Pattern        string
	Enum           []string
	Min, Max       any
}

// Calendar sets which days are business days.
type Calendar struct {
	Name string
	// Base names TARGET or a calendar declared before, which applies as well.
	Base string
	// Weekend: nil means the days of Base, or Saturday and Sunday; empty means none.
	Weekend  []time.Weekday
	Holidays []Date
	// Until is the last day with known holidays: a later day is an error. nil means complete.
	Until *Date
}

// Schedule sets when a job is due.
type Schedule struct {
	// Cron has five fields, or is @hourly, @daily, @weekly, @monthly or @yearly.
	Cron     string
	Timezone string
	// CatchUp is which missed times are made up for: none, last (the default) or all.
	CatchUp string
	// Overlap is what happens at a time when the last run is still active: forbid, queue (the default) or allow.
	Overlap string
	// Calendar restricts the due days; empty means all. WhenClosed is what happens on other days: skip (the
	// default), next or previous.
	Calendar   string
	WhenClosed string
	// Parameters may have ${schedule.date} and the like.
	Parameters map[string]string
}

// Flow is a list of elements, which run in order.
type Flow struct{ elements []element }

// NewFlow begins a flow for a branch, a flow in the flow, an atomic group or Finally.
func NewFlow() *Flow { return &Flow{} }

type element struct {
	kind, name string
	with       []With
	work       Work
	choices    []Choice
	decider    *Component
	branches   []*Flow
	child      *Job
	parameters map[string]string
}

// Work is the work of a step: a [Chunk], [Tasks], or a tasklet, which is a [Component].
type Work interface{ isWork() }

func (Chunk) isWork()     {}
func (Tasks) isWork()     {}
func (Component) isWork() {}

// Step adds a step of items (a Chunk), of tasks (Tasks), or with a tasklet.
func (f *Flow) Step(name string, work Work, with ...With) *Flow {
	return f.add(element{kind: "step", name: name, work: work, with: with})
}

// Decide takes the first choice with a true condition; the last is [Else].
func (f *Flow) Decide(name string, choices ...Choice) *Flow {
	return f.add(element{kind: "decide", name: name, choices: choices})
}

// DecideBy adds a decision by a decider; With.On maps its answer to a target.
func (f *Flow) DecideBy(name string, decider Component, with ...With) *Flow {
	return f.add(element{kind: "decide", name: name, decider: &decider, with: with})
}

// Split adds parallel flows; the outcome is the most severe one.
func (f *Flow) Split(name string, branches []*Flow, with ...With) *Flow {
	return f.add(element{kind: "split", name: name, branches: branches, with: with})
}

// Flow adds a nested flow.
func (f *Flow) Flow(name string, inner *Flow, with ...With) *Flow {
	return f.add(element{kind: "flow", name: name, branches: []*Flow{inner}, with: with})
}

// Atomic adds tasklet steps in one transaction.
func (f *Flow) Atomic(name string, steps *Flow, with ...With) *Flow {
	return f.add(element{kind: "atomic", name: name, branches: []*Flow{steps}, with: with})
}

// Child adds another job, with a separate execution; parameters may have ${...}.
func (f *Flow) Child(name string, child *Job, parameters map[string]string, with ...With) *Flow {
	return f.add(element{kind: "job", name: name, child: child, parameters: parameters, with: with})
}

func (f *Flow) add(e element) *Flow {
	f.elements = append(f.elements, e)
	return f
}

// Chunk is the work of a chunk step.
type Chunk struct {
	// Size is the number of items in a chunk, one transaction; 0 means 1000.
	Size       int
	Reader     Component
	Processors []Component
	Writers    []Component
	Retry      *Retry
	Skip       *Skip
	// Isolate finds items that cannot be written: each, bisect or none.
	Isolate              string
	NoReprocess          bool
	ProcessInTransaction bool
	// Concurrency is the number of processing goroutines of a chunk; 0 means 1.
	Concurrency int
	// ReadAhead is auto, true or false; empty means auto.
	ReadAhead string
}

// Tasks is a step that runs one task for each item, and ends when all are over.
type Tasks struct {
	Handler string
	// Items marshal to JSON; texts may have ${...}. Reader replaces them.
	Items  []any
	Reader Component
	// Key is the field that names an item's task, After the field with the keys that it waits for.
	Key, After string
	// Budget zero means 5 attempts for each.
	Budget Budget
	On     *core.Placement
}

// With sets further options of an element.
type With struct {
	When string
	// Next is the target after success, On the targets by exit code, patterns with * and ?. Without
	// both it is the following element.
	Next        string
	On          On
	Listeners   []Component
	Transaction *Transaction
	// Retry runs a tasklet again, each time in its own transaction. A Chunk has its own.
	Retry     *Retry
	Partition *Partitioned
	// Remote is "true", "false" or "auto"; empty means "false".
	Remote    string
	Placement *core.Placement
	Timeout   time.Duration
	Expect    string
	// Promote copies keys of the step's context to the job's: job keys by step keys.
	Promote map[string]string
	// StartLimit is the maximum of attempts in an instance; 0 means any number.
	StartLimit int
	// AllowStartIfComplete runs a completed step again on a restart, except a child job (rule
	// F2a).
	AllowStartIfComplete bool
}

// Transaction sets the transaction of a step, in the words of job files.
type Transaction struct {
	Propagation string        `key:"propagation"`
	Isolation   string        `key:"isolation"`
	ReadOnly    bool          `key:"read_only"`
	Timeout     time.Duration `key:"timeout"`
}

// Partitioned sets the partitions of a step.
type Partitioned struct {
	By Component
	// Workers is the number of concurrent parts; 0 means the number of CPUs.
	Workers int
	Remote  bool
	// On selects workers, with Remote; its texts may have ${part.NAME}.
	On *core.Placement
}

// On has the targets by exit code.
type On map[string]Target

// Target is the target of a transition: [To], [End], [Fail] or [Stop].
type Target struct{ kind, name, exit, restart, message string }

// To is an element of the same flow.
func To(element string) Target { return Target{kind: "to", name: element} }

// End ends the flow, COMPLETED, with the exit code exit if that is not empty.
func End(exit string) Target { return Target{kind: "end", exit: exit} }

// Fail ends the flow, FAILED, with the exit code exit if that is not empty.
func Fail(exit string) Target { return Target{kind: "fail", exit: exit} }

// Stop stops the job. A restart continues at restart; empty means the element that stopped. message
// is for the operator.
func Stop(restart, message string) Target {
	return Target{kind: "stop", restart: restart, message: message}
}

// Choice is one path of a decision: [If] or [Else].
type Choice struct {
	when   string
	target Target
}

// If goes to target if the condition, an expression, holds.
func If(condition string, target Target) Choice { return Choice{condition, target} }

// Else goes to target if no earlier choice holds.
func Else(target Target) Choice { return Choice{target: target} }
