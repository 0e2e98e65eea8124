package jobfile

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
)

// The structs of this file are the language: the loader decodes into them, and
// schema and reference are generated from them. To add a key, add a field; keys
// that are known and not supported yet are named in the `later` tags.

// jobModel is a job file.
type jobModel struct {
	strict.At
	_ strict.Extra `later:"include templates timezone incrementer listeners finally expect" ignore:"x-"`

	Job         string                            `key:"job" required:"true" doc:"The job's name: letters, digits, '_', '-' and '.', beginning with a letter."`
	Description string                            `key:"description" doc:"What the job is for, in a sentence."`
	Parameters  strict.OrderedMap[parameterModel] `key:"parameters" doc:"The parameters of a launch, by name."`
	Types       strict.OrderedMap[rowModel]       `key:"types" doc:"Row types by name, for the 'item' of components."`
	Database    string                            `key:"database" default:"default" doc:"The database of SQL components that name no other."`
	Restartable bool                              `key:"restartable" default:"true" doc:"Whether a failed instance may be run again."`
	Defaults    defaultsModel                     `key:"defaults" doc:"What steps use that say nothing else."`
	Flow        []elementModel                    `key:"flow" item:"a step" required:"true" doc:"What the job does, in order."`
}

// parameterModel declares a parameter. Its texts are read in parameters.go, as
// they depend on the type.
type parameterModel struct {
	strict.At
	_ strict.Extra `later:"secret"`

	Type        string   `key:"type" required:"true" enum:"string,int,float,bool,date,timestamp,duration,path" later:"decimal" doc:"The type of the value."`
	Doc         string   `key:"doc" doc:"What it means, for 'surfin run FILE --help'."`
	Description string   `key:"description" doc:"The same as doc."`
	Default     *rawText `key:"default" doc:"The value if none is given; an expression such as ${today()} is computed when the file is loaded."`
	Required    *bool    `key:"required" doc:"Whether a value must be given [true without a default]. If false and there is none, the value is null."`
	Identifying bool     `key:"identifying" default:"true" doc:"Whether another value makes another instance of the job."`
	Pattern     string   `key:"pattern" doc:"A regular expression that the whole text must match (string, path)."`
	Enum        []string `key:"enum" doc:"The values allowed."`
	Min         *rawText `key:"min" doc:"The least value (int, float, date, timestamp, duration)."`
	Max         *rawText `key:"max" doc:"The greatest value (int, float, date, timestamp, duration)."`
}

// defaultsModel is what steps use that say nothing else. A key of a step replaces
// the whole default, it is never merged with it.
type defaultsModel struct {
	strict.At
	_ strict.Extra `later:"timeout transaction"`

	Chunk chunkDefaults           `key:"chunk" doc:"Keys of chunks; each replaces its default by itself."`
	Retry *config.ItemRetryConfig `key:"retry" doc:"The retry of chunks that have none."`
	Skip  *config.ItemSkipConfig  `key:"skip" doc:"The skip of chunks that have none."`
}

// chunkDefaults are the keys of a chunk that may have a default of the file's
// own. They are embedded in chunkModel, so that both are one.
type chunkDefaults struct {
	Size                 *int   `key:"size" default:"1000" doc:"Items per chunk, and so per transaction."`
	Isolate              string `key:"isolate" enum:"each,bisect" default:"each" doc:"How items that cannot be written are found: one by one, or by halving the chunk. The outcome is the same; halving makes fewer commits."`
	Reprocess            bool   `key:"reprocess" default:"true" doc:"Whether items are processed again when their chunk is written again; false for processors that change their item in place."`
	ProcessInTransaction bool   `key:"process_in_transaction" default:"false" doc:"Whether processors run in the chunk's transaction."`
	Concurrency          *int   `key:"concurrency" default:"1" doc:"How many goroutines process the items of a chunk. The order of the items stays."`
}

// elementModel is one element of the flow.
type elementModel struct {
	strict.At
	_ strict.Extra `later:"decide split flow atomic job use choose decider branches steps file parameters with for_each parallel when partition expect promote"`

	Step                 string            `key:"step" required:"true" doc:"The step's name, an identifier that is there once; not end, fail or stop."`
	Chunk                *chunkModel       `key:"chunk" doc:"Read, process and write items, chunk by chunk."`
	Tasklet              *componentRef     `key:"tasklet" kind:"tasklet" doc:"Do one thing."`
	Transaction          *transactionModel `key:"transaction" doc:"The transaction of the step."`
	Listeners            componentRefs     `key:"listeners" kind:"listener" doc:"Who is told of what happens in a chunk step, in this order: one listener, or a list."`
	Timeout              *time.Duration    `key:"timeout" doc:"The step fails when it runs longer [none]."`
	StartLimit           *int              `key:"start_limit" doc:"How often the step may be attempted in one instance [none]."`
	AllowStartIfComplete bool              `key:"allow_start_if_complete" default:"false" doc:"Run it again on a restart though it completed."`
	Next                 nextModel         `key:"next" doc:"Where to go from here: a step, end, fail or stop after success, or a map of exit code patterns to such targets [the following step]."`
}

// chunkModel is the work of a chunk step.
type chunkModel struct {
	strict.At

	Reader    *componentRef           `key:"reader" kind:"reader" required:"true" doc:"Where items come from."`
	Processor componentRefs           `key:"processor" kind:"processor" doc:"What happens to an item: one processor, or a list in order."`
	Writer    componentRefs           `key:"writer" kind:"writer" required:"true" doc:"Where items go: one writer, or a list; all get every item, in one transaction."`
	Retry     *config.ItemRetryConfig `key:"retry" doc:"Which errors are tried again, and how often; a number alone is the limit [none are]."`
	Skip      *config.ItemSkipConfig  `key:"skip" doc:"Which errors cost only their item, and how many; a number alone is the limit [none do]."`
	chunkDefaults
}

// transactionModel says what transaction a step runs in.
type transactionModel struct {
	strict.At

	Propagation string         `key:"propagation" enum:"REQUIRED,REQUIRES_NEW,NESTED,NOT_SUPPORTED,SUPPORTS,MANDATORY,NEVER" doc:"How a tasklet relates to a transaction around it [REQUIRED, for tasklets that need none NOT_SUPPORTED]. Not for chunk steps."`
	Isolation   string         `key:"isolation" enum:"read_uncommitted,read_committed,repeatable_read,serializable" doc:"The isolation level [the database's own]; one that the database lacks is an error."`
	ReadOnly    bool           `key:"read_only" default:"false" doc:"Refuse writes. Not for chunk steps, which commit their position."`
	Timeout     *time.Duration `key:"timeout" doc:"The longest that the transaction may take [none]; in a chunk step, that of each chunk."`
}

// targetModel is the long form of a target: {end: {exit: CODE}}.
type targetModel struct {
	strict.At

	End  *exitModel `key:"end" doc:"The job is COMPLETED."`
	Fail *exitModel `key:"fail" doc:"The job is FAILED."`
	Stop *stopModel `key:"stop" doc:"The job is STOPPED; a restart goes on."`
}

// exitModel is the job's end.
type exitModel struct {
	strict.At

	Exit string `key:"exit" doc:"The exit code of the job [COMPLETED, FAILED]."`
}

// stopModel is a stop.
type stopModel struct {
	strict.At

	Restart string `key:"restart" doc:"The step where a restart goes on [this one again]."`
	Message string `key:"message" doc:"What the operator is told."`
}

// fieldModel is one field of a row type.
type fieldModel struct {
	strict.At
	_ strict.Extra `later:"scale locale"`

	Type   string   `key:"type" required:"true" main:"true" doc:"string, int, float, bool, date or timestamp; followed by null if it may be missing."`
	From   string   `key:"from" doc:"The name in the source: a CSV header, a JSON key [the field's name]."`
	Format string   `key:"format" doc:"The text form of a date or timestamp, of yyyy yy MM M dd d HH mm ss SSS SSSSSS XXX [ISO 8601]."`
	Nulls  []string `key:"nulls" doc:"The texts that are read as null [an empty text; none for string]."`
}

// rowModel is a row type: fields in order.
type rowModel strict.OrderedMap[fieldModel]

// rawText is a scalar that is read later, when its type is known.
type rawText struct{ node *strict.Node }

// componentRef names a component and has its config.
type componentRef struct {
	name string
	at   *strict.Node // the name
	node *strict.Node // the config; nil: none
}

// componentRefs are one component or a list of them.
type componentRefs []*componentRef

// nextModel are the transitions of an element, as written.
type nextModel struct {
	node  *strict.Node
	cases []nextCase
}

// nextCase is one pattern with its target; no pattern is success.
type nextCase struct {
	pattern string
	at      *strict.Node // the pattern, or the target
	target  target
}

// target is where a case leads.
type target struct {
	name    string // a step, or end, fail, stop
	at      *strict.Node
	exit    string
	restart string
	// restartAt is where restart was written.
	restartAt *strict.Node
	message   string
}
