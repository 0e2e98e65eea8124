package registry

import (
	"cmp"
	"context"
	"io/fs"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Kind is a component's role.
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

// Kinds are the pipeline's in order, then the others. A place is a component, too: its name is the scheme of its URLs.
func Kinds() []Kind {
	return []Kind{KindReader, KindProcessor, KindWriter, KindTasklet, KindListener, KindPartitioner, KindDecider, urlpath.Kind}
}

// Component is used by name in job files. All fields but New describe it, for lists, checks and its reference
// page.
type Component struct {
	Kind    Kind
	Name    string
	Summary string
	Doc     string
	// Example is a job file for the reference, or lines of one. Tests run the shipped ones.
	Example string
	// Config is the configuration's struct type; nil means none. Tags: `key:"path"` the name in the job file,
	// `doc:"..."`, `default:"..."`, `required:"true"`, `enum:"a,b"`, `form:"..."` advice on a list or map
	// given wrongly or missing, `main:"true"` for the field given directly (`filter: ...`), `path:"true"`
	// relative to the job file, `path:"std"` also - ([core.StdPath]), `path:"program"` a path if it has a
	// slash, `output:"true"` with it a file this writer alone writes, `literal:"true"` ${...} is not
	// evaluated, `rest:"true"` the [Expressions] or map with all other keys (its `key` is for the reference).
	// Types: strings, bools, ints, floats, time.Duration, [Size], a [Choice], lists and maps of these, nested
	// structs, [item.Type] (a name or inline map), [SQL], [JSON], [Expression], [Expressions], [Nested]. It
	// may have Validate() error.
	Config reflect.Type
	// InTransaction: a processor works in the chunk's transaction (`process_in_transaction`).
	InTransaction bool
	// Positioned: a processor has a position ([item.Positioner], rule C4a): items in order, one goroutine.
	Positioned bool
	// NoTransaction: a tasklet uses its own connections or none: NOT_SUPPORTED unless the job file says
	// otherwise.
	NoTransaction bool
	// OwnCommits: a tasklet's own transactions, which no rollback undoes: an atomic group refuses it (rule
	// T6).
	OwnCommits bool
	// Local: it uses the process's memory: workers do not run a child job with it.
	Local bool
	// StandardExits: only COMPLETED, FAILED and the framework's exit codes; others in `next` are refused.
	StandardExits bool
	// Results are set in StepContribution.Out whenever a tasklet completes, and type ${steps.NAME.out.KEY}.
	// nil means texts, or fields of the config's [item.Type] with key `out`.
	Results []row.Field
	// Types is the output type at load; a reader's in is nil, a writer returns in. cfg points to Config,
	// decoded without late-bound values. An error refuses the job file there, or at a *ConfigError's key.
	Types func(cfg any, in item.Type) (out item.Type, err error)
	// Parts are the Go types for ${part.NAME}, without `name` (string) and `index` (int64), of
	// ExecutionContext: string, int64, float64, bool, Date, time.Time, time.Duration. cfg as for Types.
	Parts func(cfg any) (map[string]reflect.Type, error)
	// New makes one instance per step execution: an item.Reader, Processor, Writer, Tasklet, Partitioner,
	// Decider or a listener of core/listener.go. cfg points to the bound Config. nil in a registry that only
	// describes.
	New func(ctx context.Context, cfg any, b BuildContext) (any, error)
}

// BuildContext describes an instance's use and provides resources.
type BuildContext struct {
	Job, Step string
	Execution core.JobExecutionID
	Databases tx.Provider
	// Database is the default of SQL components.
	Database string
	// StepDatabase has the step's transactions.
	StepDatabase string
	// Zone is for timestamps without an offset (rule D5); nil is UTC.
	Zone *time.Location
	// Continues after a commit of an earlier attempt.
	Continues bool
	// Registry makes nested components; nil: their own description does.
	Registry *Registry
	// StepContext is stored with each commit; nil if none. It belongs to the step's goroutine: not for Read,
	// nor for Process when reading ahead or concurrent.
	StepContext func() *core.ExecutionContext
	// Attempt is the reader's, processor's or writer's; nil for a listener of the job.
	Attempt func(ctx context.Context) (core.Attempt, error)
	// Previous is where a reader ended in the newest complete instance before (rule IL1), or nil; the function
	// is nil if Attempt is.
	Previous func(ctx context.Context) (item.Position, error)
	// StepRecords is a step's newest record, first, and its partitions' (ports.Attempts.Newest); nil if
	// Attempt is.
	StepRecords func(ctx context.Context, step string) ([]core.StepExecution, error)
	// Instance is the job's; Skips reads stored skips of any instance, nil if Attempt is.
	Instance core.JobInstanceID
	Skips    ports.SkipReader
	// In and Out are input and output types, as by Types.
	In, Out item.Type
	// RedriveOf is the redriven instance (rule C12); 0 means none.
	RedriveOf core.JobInstanceID
	// RedriveLater is a *ports.RedriveLaterError if RedriveOf's step has not completed (rule C12b); nil if
	// nothing is redriven.
	RedriveLater func(ctx context.Context) error
	// FileMode is files.mode; 0 means 0600.
	FileMode fs.FileMode
	// Environ is for started processes, without configuration and secrets; nil if none is known to be free of
	// secrets.
	Environ func() []string
	// Hide masks a config's secret in every text from now on; nil masks nothing.
	Hide func(what, value string)
}

// FindDatabase returns the named one, or the default. Unknown: a *ConfigError of `database`.
func (b BuildContext) FindDatabase(name string) (tx.Database, error) {
	db, err := b.Databases.Database(cmp.Or(name, b.Database))
	if err != nil {
		return nil, &ConfigError{Key: "database", Err: err}
	}
	return db, nil
}

// OnDatabase is New of a component on one database: named is its name ([BuildContext.FindDatabase]), build
// makes it. Its Config is C.
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
