package language

import (
	"time"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
)

// Calendar is a calendar of business days.
type Calendar struct {
	yamlfile.At

	Base     string   `key:"base" doc:"A calendar to extend: TARGET, or one above it in the file. Its weekend and holidays apply as well [none]."`
	Weekend  []string `key:"weekend" item:"a day of the week" doc:"The days of the week that are not business days, such as SAT [the weekend of 'base', or SAT and SUN]."`
	Holidays []string `key:"holidays" item:"a date" doc:"Other days that are not business days, as yyyy-MM-dd."`
	Until    string   `key:"until" doc:"The last day for which the holidays are known, as yyyy-MM-dd; asking about a later day is an error [they are complete]."`
}

// Job is a job file.
type Job struct {
	yamlfile.At
	_ yamlfile.Extra `ignore:"x-"`

	Job         string                         `key:"job" required:"true" doc:"The job's name: letters, digits, '_', '-' and '.', beginning with a letter."`
	Description string                         `key:"description" doc:"What the job is for, in a sentence."`
	Include     Include                        `key:"include" doc:"Files with types, templates, calendars and defaults, relative to this one: a path, or a list [none]."`
	Parameters  yamlfile.OrderedMap[Parameter] `key:"parameters" doc:"The parameters of a launch, by name."`
	Types       yamlfile.OrderedMap[Row]       `key:"types" doc:"Row types by name, for the 'item' of components."`
	Calendars   yamlfile.OrderedMap[Calendar]  `key:"calendars" doc:"Calendars of business days by name, for is_business_day, business_day and schedules; TARGET is always there."`
	Templates   yamlfile.OrderedMap[Template]  `key:"templates" doc:"Elements with arguments, by name, for 'use' in a flow."`
	Database    string                         `key:"database" default:"default" doc:"The database of SQL components that do not name one."`
	Timezone    string                         `key:"timezone" default:"UTC" doc:"The IANA time zone of the job, such as Europe/Berlin: today() is the day there, and a time without an offset is a time there, in parameters, files and expressions."`
	Timeout     *time.Duration                 `key:"timeout" doc:"The maximum duration of an execution of the flow [none]; after it, running steps are ended and the execution is FAILED. 'finally' still runs."`
	Restartable bool                           `key:"restartable" default:"true" doc:"Whether a failed instance may be run again."`
	Defaults    Defaults                       `key:"defaults" doc:"Defaults for all steps; a step overrides them key by key."`
	Incrementer string                         `key:"incrementer" doc:"The parameter that makes the next instance: an int counts on by one, a date goes to the next day [none]."`
	Inherit     []string                       `key:"inherit" doc:"The parameters, in addition to the incrementer's, that the next instance and a resumed one take from the last execution if they are not given. The others have their defaults [none]."`
	Schedule    *Schedule                      `key:"schedule" doc:"When a worker starts the registered job [never]. Commands that run a job ignore it."`
	Budget      *Budget                        `key:"budget" doc:"The limits for a run of the job by a server."`
	On          *Placement                     `key:"on" doc:"Which workers run the registered job at its scheduled times: labels that they must have ('surfin worker --label disk=eu1'), such as {disk: eu1}, or the name of one. The commands that run a job do not heed it [any]."`
	Exclusive   *ConditionText                 `key:"exclusive" doc:"Which runs exclude each other: instance, runs of the same instance; job, all runs; or an expression over params, runs of instances for which it has the same value [instance]."`
	Listeners   ComponentRefs                  `key:"listeners" kind:"listener" doc:"The listeners for the beginning and the end of an execution, called in this order: one, or a list."`
	Flow        []Element                      `key:"flow" item:"an element" required:"true" doc:"What the job does, in order."`
	Finally     []Element                      `key:"finally" item:"an element" doc:"Steps that run after the flow in every execution, whatever its status, one after the other. A failure there is recorded and does not change the status. After a kill they run at take-over or restart: at least once."`
	Expect      *ConditionText                 `key:"expect" doc:"A condition that must hold when the flow has completed; else the job is FAILED with the exit code EXPECT_FAILED [none]."`
}

// Schedule sets when a job is due.
type Schedule struct {
	yamlfile.At

	Cron       string                       `key:"cron" required:"true" doc:"Minute, hour, day of month, month and day of week; or @hourly, @daily, @weekly, @monthly, @yearly."`
	Timezone   string                       `key:"timezone" default:"UTC" doc:"The IANA time zone that the times are in, such as Europe/Berlin."`
	CatchUp    string                       `key:"catch_up" enum:"none,last,all" default:"last" doc:"Which times are run of those that were missed while no server ran: none, the last one, or all."`
	Overlap    string                       `key:"overlap" enum:"forbid,queue,allow" default:"queue" doc:"If the previous run is still active: forbid skips this run, queue delays it, allow runs both."`
	Calendar   string                       `key:"calendar" doc:"The calendar on whose business days the job is due: one of 'calendars', or TARGET [all days]."`
	WhenClosed string                       `key:"when_closed" enum:"skip,next" default:"skip" doc:"What happens to a time on a day that is not a business day: skip leaves it out, next moves it to the same time of the next business day."`
	Parameters yamlfile.OrderedMap[RawText] `key:"parameters" doc:"The values of the job's parameters; they may have ${schedule.date} and other names of the scheduled time."`
}

// Budget bounds the cost of the tasks of a run or of a step.
type Budget struct {
	yamlfile.At

	MaxAttempts      *int           `key:"max_attempts" default:"5" doc:"How often each task may be attempted."`
	MaxTotalAttempts *int           `key:"max_total_attempts" doc:"How many attempts all tasks together may have [any number]."`
	Deadline         *time.Duration `key:"deadline" doc:"How long the tasks may take from their submission [any time]; after that, unfinished ones are TIMED_OUT."`
	MaxNoProgress    *int           `key:"max_no_progress" default:"50" doc:"How many attempts of all tasks may fail one after the other."`
}

// Parameter declares a parameter.
type Parameter struct {
	yamlfile.At

	Type        string   `key:"type" required:"true" enum:"string,int,float,decimal,bool,date,timestamp,duration,path" cure:"list=a parameter has one value: write string, such as 1;2, and split(params.NAME, ';') where a list is needed|array=a parameter has one value: write string, such as 1;2, and split(params.NAME, ';') where a list is needed|[]=a parameter has one value: write string, such as 1;2, and split(params.NAME, ';') where a list is needed" doc:"The type of the value."`
	Doc         string   `key:"doc" doc:"What it means, for 'surfin run FILE --help'."`
	Description string   `key:"description" doc:"The same as doc."`
	Default     *RawText `key:"default" doc:"The value if none is given; an expression such as ${today()} or ${now()} is computed at the launch."`
	Required    *bool    `key:"required" doc:"Whether a value must be given [true without a default]. If false and there is none, the value is null."`
	Secret      bool     `key:"secret" default:"false" doc:"Whether the value is a secret: a string that is masked, not stored, and given again at a restart; see secrets."`
	Identifying bool     `key:"identifying" default:"true" doc:"Whether another value makes another instance of the job."`
	Pattern     string   `key:"pattern" doc:"A regular expression that the whole text must match (string, path)."`
	Enum        []string `key:"enum" doc:"The values allowed."`
	Min         *RawText `key:"min" doc:"The least value (int, float, decimal, date, timestamp, duration)."`
	Max         *RawText `key:"max" doc:"The greatest value (int, float, decimal, date, timestamp, duration)."`
}

// Defaults holds defaults for steps; see MergeDefaults.
type Defaults struct {
	yamlfile.At

	Chunk       ChunkDefaults           `key:"chunk" doc:"Keys of chunks."`
	Retry       *config.ItemRetryConfig `key:"retry" doc:"Keys of the retry of chunks."`
	Skip        *config.ItemSkipConfig  `key:"skip" doc:"Keys of the skip of chunks."`
	Timeout     *time.Duration          `key:"timeout" doc:"The timeout of steps with a chunk or a tasklet [none]."`
	Transaction *TransactionDefaults    `key:"transaction" doc:"Keys of the transaction of steps and of atomic groups. A step in a group, and a tasklet without a transaction, take none of them."`
}

// TransactionDefaults are the keys of a transaction that may have a default in the file.
type TransactionDefaults struct {
	Isolation string         `key:"isolation" enum:"read_uncommitted,read_committed,repeatable_read,serializable" doc:"The isolation level [the database's own]; one that the database lacks is an error."`
	Timeout   *time.Duration `key:"timeout" doc:"The maximum duration of the transaction [none]; in a chunk step, of each chunk's."`
}

// ChunkDefaults are the keys of a chunk that may have a default.
type ChunkDefaults struct {
	Size                 *int   `key:"size" default:"1000" doc:"Items per chunk, and so per transaction."`
	Isolate              string `key:"isolate" enum:"each,bisect,none" default:"each" doc:"How items that cannot be written are found: one by one, or by halving the chunk, with the same outcome and fewer commits. With none the chunk is not split, and the step fails: for constraints that span items."`
	Reprocess            bool   `key:"reprocess" default:"true" doc:"Whether items are processed again when their chunk is written again; false for processors that change their item in place."`
	ProcessInTransaction bool   `key:"process_in_transaction" default:"false" doc:"Whether processors run in the chunk's transaction."`
	Concurrency          *int   `key:"concurrency" default:"1" doc:"How many goroutines process the items of a chunk. The order of the items stays. Not with a processor that has a position."`
	ReadAhead            string `key:"read_ahead" enum:"auto,true,false" default:"auto" doc:"Whether the next chunk is read, and processed, while this one is written; the outcome is the same. With auto this applies to readers that the writers cannot affect: files, and queries to another database than the writers'. true applies it to every reader."`
}

// ElementKeys are the keys that every element has.
type ElementKeys struct {
	When *ConditionText `key:"when" doc:"Whether the element runs; if not, it is COMPLETED with the exit code NOOP. The result is kept for a restart [true]."`
	Next Next           `key:"next" doc:"Where to go from here: an element, end, fail or stop after success, or a map of exit code patterns to such targets [the following element]. Not in 'finally'."`
}

// Step is an element that does some work.
type Step struct {
	yamlfile.At

	Step                 string                       `key:"step" required:"true" doc:"The step's name, a unique identifier; not end, fail or stop."`
	Chunk                *Chunk                       `key:"chunk" doc:"Read, process and write items, chunk by chunk."`
	Tasklet              *ComponentRef                `key:"tasklet" kind:"tasklet" doc:"Do one thing."`
	Tasks                *Tasks                       `key:"tasks" doc:"Run one task for each item by a handler, and wait until all of them have ended."`
	Retry                *config.ItemRetryConfig      `key:"retry" doc:"The errors after which the tasklet runs again, each time in a new transaction, and how often; a number alone is the limit [none]. For a chunk step it belongs in 'chunk'."`
	Partition            *Partition                   `key:"partition" doc:"Do the work in parts, side by side, each with components of its own."`
	Transaction          *Transaction                 `key:"transaction" doc:"The transaction of the step."`
	Listeners            ComponentRefs                `key:"listeners" kind:"listener" doc:"The listeners for the step's events, called in this order: one, or a list. In a partitioned step they are called for each part."`
	Timeout              *time.Duration               `key:"timeout" doc:"The step fails when it runs longer [none]; in a partitioned step, each part."`
	Expect               *ConditionText               `key:"expect" doc:"A condition that must hold when the work is done, such as balanced (every item is written, filtered or skipped); else the step is FAILED with the exit code EXPECT_FAILED [none]."`
	Promote              yamlfile.OrderedMap[RawText] `key:"promote" doc:"Keys of the step's context that are copied to the job's when the step completes: {step key: job key}."`
	StartLimit           *int                         `key:"start_limit" doc:"How often the step may be attempted in one instance [none]."`
	AllowStartIfComplete bool                         `key:"allow_start_if_complete" default:"false" doc:"Run it again on a restart though it completed."`
	ElementKeys
}

// Partition describes the partitions of a step.
type Partition struct {
	yamlfile.At

	By      *ComponentRef `key:"by" kind:"partitioner" required:"true" doc:"The partitioner, which lists the parts once in an instance."`
	Workers *Workers      `key:"workers" doc:"How many parts run at once: a number, or auto, the number of CPUs [auto]."`
	Remote  bool          `key:"remote" default:"false" doc:"Worker processes ('surfin worker') work on the parts, on this machine or others, and not the process that runs the job."`
	On      *Placement    `key:"on" doc:"Which workers work on the parts: labels that they must have ('surfin worker --label disk=eu1'), such as {disk: eu1}, or the name of one. It may have values of the part: {disk: \"${part.site}\"}. With remote: true only [any]."`
}

// Workers is a number of workers; 0 means auto.
type Workers int

// Tasks is the work of a step of tasks.
type Tasks struct {
	yamlfile.At

	Handler string     `key:"handler" required:"true" doc:"The type of the tasks: shell, http_request, or one that the application registers."`
	Items   Items      `key:"items" required:"true" kind:"reader" doc:"One task for each item: a list of payloads (they may have ${...}), or a reader such as query, whose items become payloads as JSON objects."`
	Key     string     `key:"key" doc:"The field of each item that names its task for the 'after' of others, as a text or a number. It is not part of the payload [none]."`
	After   string     `key:"after" doc:"The field of each item with the keys of the tasks that must succeed before its own begins: a list, or a text with commas. It is not part of the payload; a task whose predecessor fails is canceled [none]."`
	Budget  *Budget    `key:"budget" doc:"The limits for the tasks [5 attempts for each]."`
	On      *Placement `key:"on" doc:"Which workers execute the tasks: labels that they must have ('surfin worker --label disk=eu1'), such as {disk: eu1}, or the name of one [any]."`
}

// Items is a list of payloads, or a reader.
type Items struct {
	Node *yamlfile.Node
	List []*yamlfile.Node
	Ref  *ComponentRef
}

// Decide is an element that only chooses a target.
type Decide struct {
	yamlfile.At

	Decide  string        `key:"decide" required:"true" doc:"The decision's name, a unique identifier."`
	Choose  []Choice      `key:"choose" item:"a choice" doc:"The first choice whose 'when' holds; the last one has none."`
	Decider *ComponentRef `key:"decider" kind:"decider" doc:"The component that returns an exit code, which 'next' maps to a target."`
	ElementKeys
}

// Choice is one way of a decision.
type Choice struct {
	yamlfile.At

	When *ConditionText `key:"when" doc:"The condition. The last choice has none."`
	Next *TargetText    `key:"next" required:"true" doc:"Where to go: an element, end, fail, or a stop with its restart point."`
}

// Split is an element with parallel flows.
type Split struct {
	yamlfile.At

	Split    string      `key:"split" required:"true" doc:"The split's name, a unique identifier."`
	Branches [][]Element `key:"branches" item:"a branch" required:"true" doc:"Lists of elements, which run side by side; the split has the outcome of the most severe."`
	Parallel *int        `key:"parallel" doc:"How many branches run at once [all]. On workers their slots say it."`
	Remote   string      `key:"remote" enum:"auto,true,false" default:"false" doc:"Worker processes ('surfin worker') run the branches, on this machine or others, and not the process that runs the job. With auto they do if the engine is distributed, every component of the branches may work elsewhere, and no element in them waits for workers."`
	On       *Placement  `key:"on" doc:"Which workers run the branches: labels that they must have ('surfin worker --label disk=eu1'), such as {disk: eu1}, or the name of one; or a list with one of these for each branch. With remote: true only [any]."`
	ElementKeys
}

// Flow is a flow inside of a flow.
type Flow struct {
	yamlfile.At

	Flow  string    `key:"flow" required:"true" doc:"The flow's name, a unique identifier."`
	Steps []Element `key:"steps" item:"an element" required:"true" doc:"Its elements. The end of this flow is the outcome of the element."`
	ElementKeys
}

// Atomic is a group of steps in one transaction.
type Atomic struct {
	yamlfile.At

	Atomic      string       `key:"atomic" required:"true" doc:"The group's name, a unique identifier."`
	Steps       []Element    `key:"steps" item:"an element" required:"true" doc:"Its tasklet steps. Each relates to the group's transaction as its transaction.propagation says."`
	Transaction *Transaction `key:"transaction" doc:"The transaction of the group, without a propagation."`
	ElementKeys
}

// Child is another job as an element.
type Child struct {
	yamlfile.At

	Job        string                       `key:"job" required:"true" doc:"The name of the element, a unique identifier."`
	File       string                       `key:"file" required:"true" doc:"The job file, relative to this file."`
	Parameters yamlfile.OrderedMap[RawText] `key:"parameters" doc:"The parameters of the job; they may have ${...}, and are fixed when it is first started."`
	StartLimit *int                         `key:"start_limit" doc:"How often the job may be attempted in one instance [none]."`
	Remote     string                       `key:"remote" enum:"auto,true,false" default:"false" doc:"Worker processes ('surfin worker') run the job, on this machine or others, and not the process that runs this one. With auto they do if the engine is distributed and every component of the job may work elsewhere."`
	On         *Placement                   `key:"on" doc:"Which workers run the job: labels that they must have ('surfin worker --label disk=eu1'), such as {disk: eu1}, or the name of one. With remote: true only [any]."`
	ElementKeys
}

// Chunk is the work of a chunk step.
type Chunk struct {
	yamlfile.At

	Reader    *ComponentRef           `key:"reader" kind:"reader" required:"true" doc:"Where items come from."`
	Processor ComponentRefs           `key:"processor" kind:"processor" doc:"What happens to an item: one processor, or a list in order."`
	Writer    ComponentRefs           `key:"writer" kind:"writer" required:"true" doc:"Where items go: one writer, or a list; all get every item, in one transaction."`
	Retry     *config.ItemRetryConfig `key:"retry" doc:"Which errors are retried, and how often; a number alone is the limit [none]."`
	Skip      *config.ItemSkipConfig  `key:"skip" doc:"Which errors skip only their item, and how many; a number alone is the limit [none]."`
	ChunkDefaults
}

// Transaction describes the transaction of a step.
type Transaction struct {
	yamlfile.At

	Propagation string `key:"propagation" enum:"REQUIRED,REQUIRES_NEW,NESTED,NOT_SUPPORTED,SUPPORTS,MANDATORY,NEVER" doc:"How a tasklet relates to an outer transaction [REQUIRED; NOT_SUPPORTED for tasklets that need none]. Not for chunk steps."`
	TransactionDefaults
	ReadOnly bool `key:"read_only" default:"false" doc:"Refuse writes. Not for chunk steps, which commit their position."`
}

// LongTarget is the long form of a target: {end: {exit: CODE}}.
type LongTarget struct {
	yamlfile.At

	End  *Exit `key:"end" doc:"The flow is COMPLETED."`
	Fail *Exit `key:"fail" doc:"The flow is FAILED."`
	Stop *Stop `key:"stop" doc:"The job is STOPPED; a restart continues it."`
}

// Exit is a flow's end.
type Exit struct {
	yamlfile.At

	Exit string `key:"exit" doc:"The exit code of the flow [COMPLETED, FAILED]."`
}

// Stop is a stop.
type Stop struct {
	yamlfile.At

	Restart string `key:"restart" doc:"The element of the same flow where a restart continues [this one again]."`
	Message string `key:"message" doc:"A message for the operator."`
}

// Field is one field of a row type.
type Field struct {
	yamlfile.At
	_ yamlfile.Extra `later:"locale"`

	Type   string   `key:"type" required:"true" main:"true" doc:"string, int, float, decimal, bool, date, timestamp, json, uuid or bytes; list of string, list of int and so on; followed by null if it may be missing."`
	From   string   `key:"from" doc:"The name in the source: a CSV header; a JSON key, or a path such as a.b or a[0].b if no object has that key [the field's name]."`
	Format string   `key:"format" doc:"The text form of a date or timestamp, from yyyy yy MMMM MMM MM M EEEE EEE dd d HH hh h a mm ss SSS SSSSSS XXX XX, with names in English; or epoch, epoch_ms, epoch_us: the number since 1970-01-01 UTC [ISO 8601]. Of bytes: hex or base64 [base64]."`
	Zone   string   `key:"zone" doc:"The time zone in which a timestamp without an offset is read, and in which a format is written [the job's timezone, or UTC]."`
	NullIf []string `key:"null_if" doc:"The texts that are read as null, including numbers of JSON and of a database, in quotes or not [an empty text, except in JSON; for string null and bytes null, an empty field of csv without quotes]."`

	True  []string `key:"true" doc:"bool: texts that are true, in any case of letters, in addition to true, such as [Y, yes]. The first one is written [none]."`
	False []string `key:"false" doc:"bool: texts that are false, in addition to false [none]."`

	Scale              *int   `key:"scale" doc:"decimal: the number of digits after the point. Fewer are filled with zeros, more make the item invalid [any number]."`
	DecimalSeparator   string `key:"decimal_separator" doc:"decimal, float: the character between the whole number and its fraction, such as a comma [a point]."`
	ThousandsSeparator string `key:"thousands_separator" doc:"decimal, float, int: the optional character between groups of three digits [none]; a blank also matches a no-break space, and an apostrophe a typographic one. It is not written."`
	TrailingMinus      bool   `key:"trailing_minus" default:"false" doc:"decimal, float, int: read 12.50- as -12.50, as accounting programs write it."`

	Separator string `key:"separator" doc:"list: the text between its elements, such as a semicolon [the text is a JSON array]. format, scale and zone are for the elements."`

	Default  *RawText `key:"default" doc:"The value if the source has no key or null. It is written as ISO 8601, whatever 'format' says, and the field is never null [none]."`
	Coerce   string   `key:"coerce" enum:"error,convert,null,default" default:"error" doc:"How a value that does not fit the type is treated. With error the item is invalid. With convert a value of another form is converted: the text of a JSON number, an int from 12.0, a bool from yes or 1; if that fails, the item is invalid. With null and default the value is replaced."`
	Exact    bool     `key:"exact" default:"false" doc:"Refuse a text that the field would not write as the same text again, such as 007 for an int or 1.50 for a float: the item is invalid. A timestamp with an offset is exact if its instant is kept."`
	Optional bool     `key:"optional" doc:"Lets the source omit the column or the key; the field's type must then allow null, or it has a default."`
}

// Template is a list of elements with arguments.
type Template struct {
	yamlfile.At

	Doc   string                        `key:"doc" doc:"What it is for."`
	With  yamlfile.OrderedMap[Argument] `key:"with" doc:"The arguments by name. '${with.NAME}' in the steps, also in names and keys, is replaced when the file is loaded."`
	Steps TemplateSteps                 `key:"steps" required:"true" doc:"The elements that a use of the template stands for."`
}

// Argument is an argument of a template.
type Argument struct {
	yamlfile.At

	Type    string   `key:"type" required:"true" main:"true" doc:"A type of parameters, or list or map: a value with its contents."`
	Doc     string   `key:"doc" doc:"What it means."`
	Default AnyValue `key:"default" doc:"The value if none is given [one must be given]."`
	Enum    []string `key:"enum" doc:"The values allowed [any]."`
}

// Use is a use of a template.
type Use struct {
	yamlfile.At

	Use      string        `key:"use" required:"true" doc:"The name of the template."`
	With     AnyValue      `key:"with" doc:"The arguments by name."`
	ForEach  ArgumentLists `key:"for_each" doc:"A list of arguments: the template is used once with each of them, in addition to 'with', in order."`
	Parallel *int          `key:"parallel" doc:"How many of 'for_each' run at once: they are the branches of a split then [1: one after the other]."`
	As       string        `key:"as" doc:"The name of the split, or of a flow around the elements [the template's name; without 'as', 'when', 'next' and 'parallel' the elements replace the use]."`
	ElementKeys
}

// AnyValue is a value of any kind.
type AnyValue struct{ Node *yamlfile.Node }

// ArgumentLists is the value of for_each.
type ArgumentLists struct{ Node *yamlfile.Node }

// TemplateSteps are the elements of a template.
type TemplateSteps struct{ Node *yamlfile.Node }

// Include is the files of `include`.
type Include AnyValue

// Row is a row type: fields in order.
type Row yamlfile.OrderedMap[Field]

// RawText is a scalar that is read when its type is known.
type RawText struct{ Node *yamlfile.Node }

// ComponentRef names a component and has its config.
type ComponentRef struct {
	Name string
	At   *yamlfile.Node // the name
	Node *yamlfile.Node // the config; nil means none
}

// ComponentRefs are one component or a list of them.
type ComponentRefs []*ComponentRef

// Element is one element of a flow: exactly one of the models of its kinds.
type Element struct {
	Kind   Kind // none: it was refused
	Node   *yamlfile.Node
	Step   *Step
	Decide *Decide
	Split  *Split
	Flow   *Flow
	Atomic *Atomic
	Job    *Child
}

// ConditionText is a bare expression of type bool.
type ConditionText struct {
	Node *yamlfile.Node
	Text string
}

// TargetText is a single target.
type TargetText struct {
	node   *yamlfile.Node
	Target Target
}

// Next are the transitions of an element, as written.
type Next struct {
	Node  *yamlfile.Node
	Cases []nextCase
}

type nextCase struct {
	Pattern string
	At      *yamlfile.Node // the pattern, or the target
	Target  Target
}

// Target is where a case leads.
type Target struct {
	Name      string // an element, or end, fail, stop
	At        *yamlfile.Node
	Exit      string
	Restart   string
	RestartAt *yamlfile.Node
	Message   string
}

// Placement is the value of `on`: labels, a worker's name, or for a split a list.
type Placement struct{ Node *yamlfile.Node }
