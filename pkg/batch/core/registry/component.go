package registry

import (
	"cmp"
	"context"
	"io/fs"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
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

// Kinds returns all kinds: first the pipeline's, in its order, then the others.
func Kinds() []Kind {
	return []Kind{KindReader, KindProcessor, KindWriter, KindTasklet, KindListener, KindPartitioner, KindDecider}
}

// Component is a reader, processor, writer, tasklet, listener, partitioner or decider that job files
// use by its name. All fields except New describe it, for lists, for checking a job file and for its
// reference page.
type Component struct {
	Kind Kind
	Name string
	// Summary is one line; Doc is more, in Markdown.
	Summary string
	Doc     string
	// Example is a job file for the reference page, or the lines of one that use the component. The
	// shipped components have whole files: tests load and run them.
	Example string
	// Config is the struct type of the configuration; nil means none. Its fields carry tags:
	// `key:"path"` the name in the job file, `doc:"..."`, `default:"..."`, `required:"true"`,
	// `enum:"a,b"`, `form:"..."` the advice if the value wrongly is a list or a map, or the other way
	// round, `main:"true"` for the one field that may be given directly (`filter: ...`), `path:"true"`
	// for a path relative to the job file, `path:"std"` for one that may be -, the standard input or
	// output ([core.StdPath]), `path:"program"` for a program or a command, which is a path if it has a
	// slash, `output:"true"` with it for a file that this writer alone writes, `literal:"true"` for a
	// text in which ${...} is not evaluated, `rest:"true"` for the one [Expressions] or map that takes
	// all keys of no other field (`map: {only: true, id: item.id}`; its `key` is for the reference
	// only). Fields are strings, bools, ints, floats, time.Duration, [Size], a [Choice], lists and maps
	// of these, nested structs, [item.Type] (a name or an inline map), [SQL], [JSON], [Expression],
	// [Expressions] and [Nested]. The struct may implement Validate() error.
	Config reflect.Type
	// InTransaction means that a processor works in the chunk's transaction: the chunks of its step are
	// processed there (`process_in_transaction`).
	InTransaction bool
	// Positioned means that a processor has a position ([item.Positioner], rule C4a): it gets the items
	// of its step in their order, on one goroutine.
	Positioned bool
	// NoTransaction means that a tasklet works on connections of its own or on no database: its step's
	// propagation is NOT_SUPPORTED unless the job file says otherwise.
	NoTransaction bool
	// OwnCommits means that a tasklet commits to a database in transactions of its own, which no
	// rollback undoes: an atomic group refuses it (rule T6).
	OwnCommits bool
	// Local means that the component works only in the process that runs the job, as it uses that
	// process's memory: workers do not run a child job with it.
	Local bool
	// StandardExits means that the component has no exit codes of its own, only COMPLETED, FAILED and
	// the framework's. A job file with another one in `next` is refused.
	StandardExits bool
	// Results are the named results that a tasklet sets in StepContribution.Out whenever it completes:
	// ${steps.NAME.out.KEY} has their types. nil means texts, or the fields of the config's [item.Type]
	// with the key `out`.
	Results []row.Field
	// Types returns the component's output type at load: for a reader in is nil; for a writer the
	// result is ignored (return in). cfg is a pointer to Config, decoded except for its late-bound
	// values. An error refuses the job file at the component's position, or at the key of a
	// *ConfigError.
	Types func(cfg any, in item.Type) (out item.Type, err error)
	// Parts returns, for a partitioner, the Go types of the values for ${part.NAME}, by name, without
	// `name` (string) and `index` (int64), which every partition has. The types are the
	// ExecutionContext's: string, int64, float64, bool, Date, time.Time, time.Duration. cfg as for
	// Types.
	Parts func(cfg any) (map[string]reflect.Type, error)
	// New makes an instance, one per step execution: an item.Reader, Processor, Writer, Tasklet,
	// Partitioner or Decider, or a listener of any interface of core/listener.go. cfg is a pointer to
	// Config with everything decoded and bound. New is nil in a registry that only describes.
	New func(ctx context.Context, cfg any, b BuildContext) (any, error)
}

// BuildContext describes the use of a component's instance, and provides its resources.
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
	// Continues means that the step continues after a commit of an earlier attempt.
	Continues bool
	// Registry makes nested components; nil means that their own description makes them.
	Registry *Registry
	// StepContext returns the context of the step execution, which is stored with each commit; nil if
	// there is none. It belongs to the goroutine of the step: not for Read, nor for Process if the step
	// reads ahead or has concurrency.
	StepContext func() *core.ExecutionContext
	// Attempt returns the attempt of the step in which a reader, processor or writer works; nil if
	// there is none, as for a listener of the job.
	Attempt func(ctx context.Context) (core.Attempt, error)
	// Previous returns the position at which a reader ended in the newest complete instance of the job
	// before this one (rule IL1), or nil; the function is nil if Attempt is.
	Previous func(ctx context.Context) (item.Position, error)
	// StepRecords returns the newest record of a step of this instance, first, and its partitions'
	// (ports.Attempts.Newest); nil if Attempt is.
	StepRecords func(ctx context.Context, step string) ([]core.StepExecution, error)
	// Instance is the instance of the job; Skips reads stored skips, of this and other instances, and
	// is nil if Attempt is.
	Instance core.JobInstanceID
	Skips    ports.SkipReader
	// In is the input item type of a processor or writer, Out the output type of a reader or processor,
	// as returned by Types.
	In, Out item.Type
	// RedriveOf is the instance of the skipped items that run through the step again (rule C12); 0
	// means none.
	RedriveOf core.JobInstanceID
	// RedriveLater returns a *core.RedriveLaterError if the step of RedriveOf has not completed (rule
	// C12b); nil if nothing is redriven.
	RedriveLater func(ctx context.Context) error
	// FileMode is the mode of files that the component makes (the setting files.mode); 0 means 0600.
	FileMode fs.FileMode
	// Environ returns the environment for processes that the component starts, without this program's
	// configuration and without secrets; nil if no environment is known to be free of secrets.
	Environ func() []string
	// Hide masks a secret of the config from now on, in every text shown or stored; nil masks nothing.
	Hide func(what, value string)
}

// FindDatabase returns the named database, or the default one of SQL components if name is empty. An
// unknown name is a *ConfigError of the key `database`.
func (b BuildContext) FindDatabase(name string) (tx.Database, error) {
	db, err := b.Databases.Database(cmp.Or(name, b.Database))
	if err != nil {
		return nil, &ConfigError{Key: "database", Err: err}
	}
	return db, nil
}

// OnDatabase returns the New of a component that works on one database: named returns the name of that
// database in a configuration, as in [BuildContext.FindDatabase], and build makes the component on it.
// The component's Config is C.
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
	// SendsRowData reports whether its job.error is the whole message, which may hold values of rows
	// (rule OP7).
	SendsRowData() bool
}
