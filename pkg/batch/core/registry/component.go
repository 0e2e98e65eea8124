package registry

import (
	"cmp"
	"context"
	"io/fs"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Kind is the role of a component in a job file.
type Kind string

// The kinds of component.
const (
	KindReader      Kind = "reader"
	KindProcessor   Kind = "processor"
	KindWriter      Kind = "writer"
	KindTasklet     Kind = "tasklet"
	KindListener    Kind = "listener"
	KindPartitioner Kind = "partitioner"
	KindDecider     Kind = "decider"
)

// Kinds returns all kinds: those of the pipeline in its order, then the others.
func Kinds() []Kind {
	return []Kind{KindReader, KindProcessor, KindWriter, KindTasklet, KindListener, KindPartitioner, KindDecider}
}

// Component is a reader, processor, writer, tasklet, listener, partitioner or
// decider that job files use by its name. Its fields other than New describe it:
// they list it, check a job file and generate its reference page, and nothing else
// is built for that.
type Component struct {
	Kind Kind
	Name string
	// Summary is one line; Doc is more, in Markdown.
	Summary string
	Doc     string
	// Example is a job file for the reference page, or the lines of one that use the component.
	// Those of the shipped components are whole: tests load and run them.
	Example string
	// Config is the struct type of the configuration; nil: none. Its fields carry tags:
	// `key:"path"` the name in the job file, `doc:"..."`, `default:"..."`,
	// `required:"true"`, `enum:"a,b"`, `form:"..."` the cure where the value is a list or a map and
	// should not be, or the other way round, `main:"true"` for the one field that may be given
	// directly (`filter: ...`), `path:"true"` for a path relative to the job file,
	// `path:"std"` for one that may be -, the standard input or output ([core.StdPath]),
	// `path:"program"` for a program or a command, which is one where it has a slash,
	// `output:"true"` with it for a file that this writer alone writes,
	// `literal:"true"` for a text in which ${...} is not evaluated, `rest:"true"` for the
	// one [Expressions] or map that takes all keys of no other field (`map: {only: true,
	// id: item.id}`; its `key` is for the reference only). Fields are strings, bools,
	// ints, floats, time.Duration, [Size], a [Choice], lists and maps of these, nested structs,
	// [item.Type] (a name or an inline map), [SQL], [JSON], [Expression], [Expressions] and
	// [Nested].
	// The struct may implement Validate() error.
	Config reflect.Type
	// InTransaction says that a processor works in the chunk's transaction: the chunks of
	// its step are processed there (`process_in_transaction`).
	InTransaction bool
	// Positioned says that a processor has a position ([item.Positioner], rule C4a): it gets the items
	// of its step in their order, on one goroutine.
	Positioned bool
	// NoTransaction says that a tasklet works on connections of its own or on no
	// database: its step's propagation is NOT_SUPPORTED unless the job file says more.
	NoTransaction bool
	// OwnCommits says that a tasklet commits to a database in transactions of its own, which no
	// rollback undoes: an atomic group does not take it (rule T6).
	OwnCommits bool
	// Local says that the component works only in the process that runs the job, as it uses
	// what that one has in memory: a child job with it is not run by workers.
	Local bool
	// StandardExits says that the component gives no exit code of its own: COMPLETED, FAILED
	// and what the framework gives are all. A job file whose `next` waits for another one is
	// refused.
	StandardExits bool
	// Results are the named results that a tasklet has in every StepContribution.Out where it
	// completes: ${steps.NAME.out.KEY} has their types. nil: they are texts, or the fields of
	// the config's [item.Type] with the key `out`.
	Results []row.Field
	// Types returns the component's output type at load: for a reader in is nil;
	// for a writer the result is ignored (return in). cfg is a pointer to Config,
	// decoded but for its late-bound values. An error refuses the job file at the
	// component's position, or at the key of a *ConfigError.
	Types func(cfg any, in item.Type) (out item.Type, err error)
	// Parts returns, for a partitioner, the Go types of what ${part.NAME} reads, by
	// name, without `name` (string) and `index` (int64), which every partition has.
	// Types are those of an ExecutionContext: string, int64, float64, bool, Date,
	// time.Time, time.Duration. cfg as for Types.
	Parts func(cfg any) (map[string]reflect.Type, error)
	// New makes an instance, one per step execution: a item.Reader, Processor, Writer,
	// Tasklet, Partitioner or Decider, or a listener of any interface of
	// core/listener.go. cfg is a pointer to Config with everything decoded and bound.
	// New is nil in a registry that only describes.
	New func(ctx context.Context, cfg any, b BuildContext) (any, error)
}

// BuildContext says where an instance of a component is used, and what it may use.
type BuildContext struct {
	Job, Step string
	Execution core.JobExecutionID
	// Databases finds the databases of the application.
	Databases tx.Provider
	// Database is the name of the database that SQL components use unless their
	// config names another.
	Database string
	// StepDatabase is the name of the database of the step's transactions.
	StepDatabase string
	// Zone is the time zone of the job, for timestamps without an offset (rule D5); nil is UTC.
	Zone *time.Location
	// Continues says that the step continues behind a commit of an earlier attempt.
	Continues bool
	// Registry makes nested components; nil: they are made by what describes them.
	Registry *Registry
	// StepContext returns the context of the step execution, which is stored with each
	// commit; nil where there is none. It belongs to the goroutine of the step: not for Read, nor
	// for Process where the step reads ahead or has concurrency.
	StepContext func() *core.ExecutionContext
	// Attempt returns the attempt of the step in which a reader, processor or writer
	// works; nil where there is none, as for a listener of the job.
	Attempt func(ctx context.Context) (core.Attempt, error)
	// Previous returns the position at which a reader ended in the newest complete
	// instance of the job before this one (rule IL1); nil where there is none, and the
	// function is nil where Attempt is.
	Previous func(ctx context.Context) (item.Position, error)
	// StepRecords returns the newest record of a step of this instance, first, and those of its
	// partitions (core.Attempts.Newest); nil where Attempt is.
	StepRecords func(ctx context.Context, step string) ([]core.StepExecution, error)
	// Instance is the instance of the job; Skips reads stored skips, of it and of others, and is
	// nil where Attempt is.
	Instance core.JobInstanceID
	Skips    core.SkipReader
	// In is the type of the items of a processor or writer, Out of those that a reader
	// or processor returns, as Types says.
	In, Out item.Type
	// RedriveOf is the instance whose skipped items the step is run through again (rule
	// C12); 0: it is not.
	RedriveOf core.JobInstanceID
	// RedriveLater returns a *core.RedriveLaterError if the step of RedriveOf has not completed
	// (rule C12b); nil if nothing is redriven.
	RedriveLater func(ctx context.Context) error
	// FileMode are the permissions of files that the component makes (the setting
	// files.mode); 0: 0600.
	FileMode fs.FileMode
	// Environ returns the environment for processes that the component starts: without what configures
	// this program, and without secrets; nil: there is none that is known to have no secrets.
	Environ func() []string
	// Hide masks a secret of the config from now on, wherever a text is shown or stored; nil: nothing is.
	Hide func(what, value string)
}

// FindDatabase returns the database of that name, or the default one of SQL
// components where name is empty. An unknown name is a *ConfigError of the key
// `database`.
func (b BuildContext) FindDatabase(name string) (tx.Database, error) {
	db, err := b.Databases.Database(cmp.Or(name, b.Database))
	if err != nil {
		return nil, &ConfigError{Key: "database", Err: err}
	}
	return db, nil
}

// OnDatabase returns the New of a component that works on one database: named returns the
// name of that database in a configuration, as in [BuildContext.FindDatabase], and build
// makes the component on it. The component's Config is C.
func OnDatabase[C, T any](named func(*C) string, build func(db tx.Database, config C) (T, error)) func(context.Context, any, BuildContext) (any, error) {
	return func(_ context.Context, cfg any, b BuildContext) (any, error) {
		c := cfg.(*C)
		db, err := b.FindDatabase(named(c))
		if err != nil {
			return nil, err
		}
		return build(db, *c)
	}
}

// Sender is the configuration of a component that sends texts to other people or programs, such as a webhook.
type Sender interface {
	// SendsRowData says that job.error in it is the whole message, which may hold values of rows (rule OP7).
	SendsRowData() bool
}
