package chunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// defaultSize is the default number of items per chunk.
const defaultSize = 1000

// MinSkippedReads is the minimum number of skipped reads allowed per chunk (rule C1a).
const MinSkippedReads = 1000

// Isolation is the method by which a split finds the items that cannot be written (rule C7).
type Isolation string

// The isolations. The outcomes of the first two are the same; bisecting makes fewer commits: k bad
// items of n cost about k·log2(n) transactions instead of n. Both write items without their neighbours:
// with a constraint over several items that only COMMIT checks, they would skip good ones. IsolateNone
// fails the step instead.
const (
	IsolateEach   Isolation = "each"
	IsolateBisect Isolation = "bisect"
	IsolateNone   Isolation = "none"
)

// ReadAhead selects whether the next chunk is read while this one is written (rule C20).
type ReadAhead string

// Whether the next chunk is read ahead. The outcome of the step is always the same. Nothing is read
// ahead if a listener is called before or after each read.
const (
	// ReadAheadAuto reads ahead if the reader declares that this step's writes do not change its input
	// (item.Independent).
	ReadAheadAuto ReadAhead = ""
	// ReadAheadOn declares it for the reader.
	ReadAheadOn ReadAhead = "on"
	// ReadAheadOff reads each chunk after the commit of the previous one.
	ReadAheadOff ReadAhead = "off"
)

// Config describes a chunk step.
type Config struct {
	Name string
	// Size is the number of items read per chunk; 0 means defaultSize.
	Size int
	// MaxSkippedReads is the number of skipped reads that also ends a chunk, as they take no place; 0
	// means the larger of Size and MinSkippedReads (rule C1a).
	MaxSkippedReads int
	// Database is the writers' database, where the position is committed too: in the repository's own
	// row, or in a checkpoint stored with the data if the repository is in another database (rule C18).
	Database tx.Database
	// Attr is the isolation and the timeout of each chunk's transaction. Its propagation must be empty:
	// a chunk step owns its transactions.
	Attr tx.Attr
	// Timeout is the time after which the step fails; 0 means none.
	Timeout time.Duration
	// Assemble makes the components of one step execution.
	Assemble func(ctx context.Context, run *model.StepRun) (Parts, error)

	// Targets returns the targets of one execution that only one writer may write, such as the names of
	// files, without making them; nil means none.
	Targets func(ctx context.Context, run *model.StepRun) ([]string, error)

	// Together returns the targets that all parts of a partitioned step write as one (rule C15w), and JoinWriters makes
	// the writers that join them, nil for the other ones. nil means none.
	Together    func(ctx context.Context, run *model.StepRun) ([]string, error)
	JoinWriters func(ctx context.Context, run *model.StepRun) ([]item.Writer, error)

	// CreatesTargets means that a writer is an itemextra.PartsPreparer.
	CreatesTargets bool

	// Retry selects the failures that are retried; zero means none.
	Retry Retry
	// Skip decides which items may be skipped; nil means none.
	Skip SkipPolicy
	// Transient reports a failed transaction that is not the fault of its items, such as a deadlock: it
	// is retried by Retry, and never skipped (rule C7). phase is core.PhaseWrite, or core.PhaseProcess
	// inside the transaction. nil means that none is.
	Transient func(phase core.Phase, err error) bool
	// Isolate is IsolateEach unless set.
	Isolate Isolation
	// KeepOutputs writes the same outputs again in a retry or a split; otherwise the items are
	// processed again (job file: reprocess: false).
	KeepOutputs bool
	// ProcessInTransaction runs the processors inside the chunk's transaction.
	ProcessInTransaction bool
	// Concurrency is the number of goroutines that process the items of a chunk; 0 and 1 mean only the
	// step's own. Order, counters and restart are the same (rule C17). It excludes processors with a
	// position (rule C4a).
	Concurrency int
	// ReadAhead is ReadAheadAuto unless set.
	ReadAhead ReadAhead
	// Listeners makes the listeners of one step execution, of any of the interfaces of core/listener.go
	// except the job interfaces; nil means only the listeners of Parts.
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
	// Expect must hold when the work is done, or the step fails; commits stay. nil expects nothing.
	Expect *model.Condition
	// Promote copies keys of the step's context to the job's; nil means none.
	Promote *model.Promotion
	// Classify names the class of an error for a stored skip; nil means exception.ClassOf.
	Classify func(error) string
}

// Parts are the components of one step execution, made for it alone.
type Parts struct {
	Reader     item.Reader
	Processors []item.Processor
	// Writers all get every chunk, in order, in one transaction.
	Writers []item.Writer
	// Listeners are called after Config.Listeners. They are made too late for BeforeStep and AfterStep,
	// which components may have (rule C16b).
	Listeners []any
	// Bound are the values from outside the definition that determine the reader's input and each
	// writer's target, the reader's first. They are compared with the values of the last commit (rule
	// C15x). The list may be shorter: missing values are not compared.
	Bound []Bound
}

// Bound are values that the definition of a component takes from parameters, the environment or earlier
// steps.
type Bound struct {
	// Hash stands for the values; empty means that there are none.
	Hash string
	// Of names the component, and Names the location and meaning of each value, for messages.
	Of    string
	Names []string
}

// Step is a chunk step: a [model.Step].
type Step struct {
	config Config
	tx     *tx.Manager
}

// ChunkStep is Step under the name that Spring Batch and the architecture use.
type ChunkStep = Step

// New checks the configuration. Its error lists all errors.
func New(config Config) (*Step, error) {
	if config.Size == 0 {
		config.Size = defaultSize
	}
	if config.MaxSkippedReads == 0 {
		config.MaxSkippedReads = max(config.Size, MinSkippedReads)
	}
	if config.Isolate == "" {
		config.Isolate = IsolateEach
	}
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("chunk step %s: %w", config.Name, err)
	}
	return &Step{config: config, tx: tx.NewManager(config.Database)}, nil
}

func (c Config) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Name == "", "it needs a name")
	wrong(c.Size < 0, "size %d is less than 1", c.Size)
	wrong(c.MaxSkippedReads < 0, "max skipped reads %d is less than 1", c.MaxSkippedReads)
	wrong(c.Assemble == nil, "it has no Assemble function")
	wrong(c.Attr.Propagation != "", "propagation %s: not possible, a chunk step owns its transactions", c.Attr.Propagation)
	wrong(c.Attr.ReadOnly, "its transactions cannot be read-only, because they write")
	wrong(c.Retry.Limit < 0, "retry limit %d is less than 0", c.Retry.Limit)
	wrong(c.Isolate != IsolateEach && c.Isolate != IsolateBisect && c.Isolate != IsolateNone, "isolate %q is unknown (allowed: each, bisect, none)", c.Isolate)
	wrong(c.ReadAhead != ReadAheadAuto && c.ReadAhead != ReadAheadOn && c.ReadAhead != ReadAheadOff, "read ahead %q is unknown (allowed: on, off, or nothing)", c.ReadAhead)
	wrong(c.Concurrency < 0, "concurrency %d is less than 1", c.Concurrency)
	wrong(c.Concurrency > 1 && c.ProcessInTransaction, "concurrency and process_in_transaction cannot be combined: a transaction has one connection")
	wrong(c.KeepOutputs && c.ProcessInTransaction, "reprocess: false and process_in_transaction cannot be combined: a rollback undoes the writes of the processor")
	if err := c.Retry.Backoff.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("backoff: %w", err))
	}
	if c.Database == nil {
		errs = append(errs, errors.New("it needs a database"))
	} else if err := c.Database.Check(c.Attr); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Name is the step's name in its flow.
func (s *Step) Name() string { return s.config.Name }

// Kind is "chunk".
func (s *Step) Kind() string { return "chunk" }

// Timeout is the configured limit; 0 means none.
func (s *Step) Timeout() time.Duration { return s.config.Timeout }

// StepListeners makes the listeners of one execution.
func (s *Step) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	if s.config.Listeners == nil {
		return nil, nil
	}
	return s.config.Listeners(ctx, run)
}

// Targets implements model.Targeted.
func (s *Step) Targets(ctx context.Context, run *model.StepRun) ([]string, error) {
	if s.config.Targets == nil {
		return nil, nil
	}
	return s.config.Targets(ctx, run)
}

// PrepareParts implements model.PartsPreparer.
func (s *Step) PrepareParts(ctx context.Context, run *model.StepRun) error {
	if err := s.noteTogether(ctx, run); err != nil || !s.config.CreatesTargets {
		return err
	}
	parts, err := s.assemble(ctx, run)
	if err != nil {
		return err
	}
	return s.tx.Do(ctx, s.config.Attr, func(ctx context.Context) error {
		for _, w := range parts.Writers {
			p := optional[itemextra.PartsPreparer](w.Component())
			if p == nil {
				continue
			}
			if err := guarded(func() error { return p.PrepareParts(ctx) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// Expect is the step's gate, or nil.
func (s *Step) Expect() *model.Condition { return s.config.Expect }

// Promote selects the keys that the step copies to the job's context, or nil.
func (s *Step) Promote() *model.Promotion { return s.config.Promote }

func (s *Step) assemble(ctx context.Context, run *model.StepRun) (parts Parts, err error) {
	err = guarded(func() (err error) { parts, err = s.config.Assemble(ctx, run); return err })
	return parts, err
}

func (s *Step) classOf(err error) string {
	if s.config.Classify != nil {
		return s.config.Classify(err)
	}
	return string(exception.ClassOf(err))
}
