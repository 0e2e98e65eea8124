package define

import (
	"time"

	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Job is a definition that grows by its methods, which return it. [Job.Load] reports all mistakes together. A
// Job is not safe for concurrent use while it grows.
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
	budget      task.Budget
	on          *core.Placement
	exclusive   string
	parameters  []Parameter
	calendars   []Calendar
	listeners   []Component
	flow        Flow
	finally     *Flow
}

// NewJob begins a job. Its name, by which it is found, begins with a letter and has letters, digits, _ - and .
func NewJob(name string) *Job { return &Job{name: name} }

// Name returns the job's name.
func (j *Job) Name() string { return j.name }

// Describe sets the job's description.
func (j *Job) Describe(text string) *Job {
	j.description = text
	return j
}

// Database names the database of components that name no other; the default is
// "default".
func (j *Job) Database(name string) *Job {
	j.database = name
	return j
}

// Timezone names the IANA time zone of the job; the default is UTC.
func (j *Job) Timezone(name string) *Job {
	j.timezone = name
	return j
}

// Timeout is the maximum duration of a flow's execution; after it the execution is FAILED.
func (j *Job) Timeout(d time.Duration) *Job {
	j.timeout = d
	return j
}

// Parameter declares a parameter.
func (j *Job) Parameter(p Parameter) *Job {
	j.parameters = append(j.parameters, p)
	return j
}

// Calendar declares a calendar of business days, for is_business_day and business_day in the
// expressions of the job.
func (j *Job) Calendar(c Calendar) *Job {
	j.calendars = append(j.calendars, c)
	return j
}

// Incrementer names the parameter that makes the next instance: an int is incremented by one, a date goes to
// the next day.
func (j *Job) Incrementer(parameter string) *Job {
	j.incrementer = parameter
	return j
}

// Inherit names parameters that the next instance, and a resumed one, take from the last execution if they
// are not given. The others have their defaults.
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
func (j *Job) Budget(b task.Budget) *Job {
	j.budget = b
	return j
}

// On selects the workers that run the job where it is registered (rule PL1).
func (j *Job) On(p core.Placement) *Job {
	j.on = &p
	return j
}

// Exclusive sets which runs exclude each other: instance, runs of the same instance; job, all runs; or an
// expression over params, the instances for which it has the same value.
func (j *Job) Exclusive(key string) *Job {
	j.exclusive = key
	return j
}

// Expect sets a condition that must hold when the flow has completed; else the job is FAILED with the exit
// code EXPECT_FAILED.
func (j *Job) Expect(condition string) *Job {
	j.expect = condition
	return j
}

// Listeners adds listeners for the start and the end of an execution.
func (j *Job) Listeners(list ...Component) *Job {
	j.listeners = append(j.listeners, list...)
	return j
}

// Finally sets the steps that run one after the other following the flow in every execution, whatever its
// status.
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

// Parameter declares a parameter of a job. Its zero fields are left out.
type Parameter struct {
	Name string
	Type core.ParameterType
	// Doc describes the parameter.
	Doc string
	// Default is the value if none is given: of the Go type of Type, or a text, which may be an expression
	// such as ${today()}. nil means none.
	Default any
	// Optional lets the parameter be missing without a default: it is null then.
	Optional bool
	// NotIdentifying means that another value does not make another instance.
	NotIdentifying bool
	// Pattern is a regular expression that the whole text must match (string, path).
	Pattern string
	// Enum are the values allowed.
	Enum []string
	// Min and Max are limits, as Default.
	Min, Max any
}

// Calendar sets which days are business days. Its zero fields are left out.
type Calendar struct {
	Name string
	// Base names a calendar, TARGET or one declared before, with a weekend and holidays that apply as well.
	Base string
	// Weekend lists the days of a week that are not business days. nil means the days of Base, or Saturday
	// and Sunday; empty means none.
	Weekend []time.Weekday
	// Holidays are the other days that are none.
	Holidays []core.Date
	// Until is the last day up to which the holidays are known: a question about a later day is an error. nil
	// means that they are complete.
	Until *core.Date
}

// Schedule sets when a job is due. Its zero fields have the defaults of a job file.
type Schedule struct {
	// Cron has minute, hour, day of month, month and day of week, or is @hourly, @daily,
	// @weekly, @monthly or @yearly.
	Cron string
	// Timezone is the IANA time zone of the times; empty means UTC.
	Timezone string
	// CatchUp sets which missed times are run; empty means the last one.
	CatchUp schedule.CatchUp
	// Overlap sets the behavior while an earlier run is still active; empty means that the next one waits.
	Overlap schedule.Overlap
	// Calendar restricts the due days to its business days; empty means all days. WhenClosed sets the
	// behavior for a time on another day; empty means that it is left out.
	Calendar   string
	WhenClosed schedule.Closed
	// Parameters are the values of the job's parameters, which may have ${schedule.date} and
	// other names of the scheduled time.
	Parameters map[string]string
}

// Flow is a list of elements, which run in order. The zero Flow is empty.
type Flow struct{ elements []element }

// NewFlow begins a flow for a branch of a split, a nested flow, an atomic group or the steps of Finally.
func NewFlow() *Flow { return &Flow{} }

// element is one element of a flow. One of the fields from work on is set.
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

// Step adds a step that reads, processes and writes items (a Chunk), runs tasks (Tasks), or does one thing (a
// tasklet).
func (f *Flow) Step(name string, work Work, with ...With) *Flow {
	return f.add(element{kind: "step", name: name, work: work, with: with})
}

// Decide adds a decision, which takes the first choice with a true condition. The last choice is [Else].
func (f *Flow) Decide(name string, choices ...Choice) *Flow {
	return f.add(element{kind: "decide", name: name, choices: choices})
}

// DecideBy adds a decision by a decider. With.On maps its answer to a target.
func (f *Flow) DecideBy(name string, decider Component, with ...With) *Flow {
	return f.add(element{kind: "decide", name: name, decider: &decider, with: with})
}

// Split adds flows that run in parallel. Its outcome is the most severe one of the flows.
func (f *Flow) Split(name string, branches []*Flow, with ...With) *Flow {
	return f.add(element{kind: "split", name: name, branches: branches, with: with})
}

// Flow adds a nested flow. The outcome at its end is the outcome of the element.
func (f *Flow) Flow(name string, inner *Flow, with ...With) *Flow {
	return f.add(element{kind: "flow", name: name, branches: []*Flow{inner}, with: with})
}

// Atomic adds tasklet steps in one transaction.
func (f *Flow) Atomic(name string, steps *Flow, with ...With) *Flow {
	return f.add(element{kind: "atomic", name: name, branches: []*Flow{steps}, with: with})
}

// Child adds another job as an element, with a separate execution. parameters may have ${...}.
func (f *Flow) Child(name string, child *Job, parameters map[string]string, with ...With) *Flow {
	return f.add(element{kind: "job", name: name, child: child, parameters: parameters, with: with})
}

func (f *Flow) add(e element) *Flow {
	f.elements = append(f.elements, e)
	return f
}

// Chunk is the work of a chunk step. Its zero fields have the defaults of a job file.
type Chunk struct {
	// Size is the number of items in a chunk, and thus in a transaction; 0 means 1000.
	Size       int
	Reader     Component
	Processors []Component
	// Writers each receive all items, in one transaction.
	Writers []Component
	// Retry sets which errors are retried and how often; nil means none.
	Retry *config.ItemRetryConfig
	// Skip sets which errors cost only their item, and how many; nil means none.
	Skip *config.ItemSkipConfig
	// Isolate is how items that cannot be written are found: each, bisect or none.
	Isolate string
	// NoReprocess means that items are not processed again when their chunk is written again: for processors
	// that change their item in place.
	NoReprocess bool
	// ProcessInTransaction makes processors run in the chunk's transaction.
	ProcessInTransaction bool
	// Concurrency is the number of goroutines that process the items of a chunk; 0 means 1.
	Concurrency int
	// ReadAhead sets whether the next chunk is read while this one is written: auto, true or false; empty
	// means auto.
	ReadAhead string
}

// Tasks is the work of a step that runs one task for each item, and ends when all tasks are over.
type Tasks struct {
	// Handler is the type of the tasks.
	Handler string
	// Items are the payloads, which marshal to JSON; texts in them may have ${...}. Reader replaces them: its
	// items are the payloads, as JSON objects.
	Items  []any
	Reader Component
	// Key is the field of each item that names its task, and After the field with the keys of the tasks that
	// it waits for; empty means that the tasks have no order.
	Key, After string
	// Budget limits the cost of the tasks; zero means 5 attempts for each.
	Budget task.Budget
	// On selects the workers that may execute the tasks; nil means any.
	On *core.Placement
}

// With sets further options of an element. Zero fields are not set; an option that does not fit the kind of
// the element is refused.
type With struct {
	// When is an expression: whether the element runs.
	When string
	// Next is the target after success, and On the targets by exit code: its keys are patterns with * and ?.
	// Without both it is the following element.
	Next string
	On   map[string]Target
	// Listeners are called for the events of the step.
	Listeners []Component
	// Transaction is the transaction of the step, of each of its chunks, or of the group.
	Transaction *Transaction
	// Retry sets after which errors a tasklet runs again, each time in its own transaction, and how often;
	// nil means none. A Chunk has its own.
	Retry *config.ItemRetryConfig
	// Partition divides the step's work into parts.
	Partition *Partition
	// Remote sets where a child job or the branches of a split run: "true", "false" or "auto" (see the key
	// remote of job files). Empty means "false".
	Remote string
	// Placement selects the workers that run a child job, or the branches of a split, with Remote "true"; nil
	// means any.
	Placement *core.Placement
	// Timeout is how long the step may run.
	Timeout time.Duration
	// Expect is an expression that must hold when the step's work is done.
	Expect string
	// Promote lists keys of the step's context to copy to the job's when the step completes: job keys by step
	// keys.
	Promote map[string]string
	// StartLimit is the maximum number of attempts of the step in an instance; 0 means any number.
	StartLimit int
	// AllowStartIfComplete makes a completed step run again on a restart, except for a child job (rule F2a).
	AllowStartIfComplete bool
}

// Transaction sets the transaction of a step, in the words of job files.
type Transaction struct {
	// Propagation is REQUIRED, REQUIRES_NEW, NESTED, NOT_SUPPORTED, SUPPORTS, MANDATORY or NEVER: how a
	// tasklet relates to an outer transaction.
	Propagation string `key:"propagation"`
	// Isolation is read_uncommitted, read_committed, repeatable_read or serializable.
	Isolation string        `key:"isolation"`
	ReadOnly  bool          `key:"read_only"`
	Timeout   time.Duration `key:"timeout"`
}

// Partition sets the partitions of a step.
type Partition struct {
	// By is the partitioner.
	By Component
	// Workers is the number of concurrent parts; 0 means the number of CPUs.
	Workers int
	// Remote lets worker processes, on this machine or others, work on the parts instead of the job's
	// process.
	Remote bool
	// On selects the workers that may work on the parts, with Remote; its texts may have ${part.NAME}. nil
	// means any.
	On *core.Placement
}

// Target is the target of a transition: [To], [End], [Fail] or [Stop].
type Target struct{ kind, name, exit, restart, message string }

// To is an element of the same flow.
func To(element string) Target { return Target{kind: "to", name: element} }

// End ends the flow, COMPLETED, with the exit code exit if that is not empty.
func End(exit string) Target { return Target{kind: "end", exit: exit} }

// Fail ends the flow, FAILED, with the exit code exit if that is not empty.
func Fail(exit string) Target { return Target{kind: "fail", exit: exit} }

// Stop stops the job. A restart continues at the element restart of the same flow; empty means the one that
// stopped. message is for the operator.
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
