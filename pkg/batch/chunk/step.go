package chunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DefaultSize is the default number of items per chunk.
const DefaultSize = 1000

// MinSkippedReads per chunk (rule C1a).
const MinSkippedReads = 1000

// Isolation is how a split finds bad items (rule C7).
type Isolation string

// The first two have the same outcome; bisecting needs about k·log2(n) transactions for k bad items of n. Both
// write items alone: a constraint over several items checked at COMMIT would make them skip good ones.
// IsolateNone fails the step.
const (
	IsolateEach   Isolation = "each"
	IsolateBisect Isolation = "bisect"
	IsolateNone   Isolation = "none"
)

// Config describes a chunk step.
type Config struct {
	Name string
	// Size is the number of items read per chunk; 0 means DefaultSize.
	Size int
	// MaxSkippedReads also ends a chunk; 0 means the larger of Size and MinSkippedReads (rule C1a).
	MaxSkippedReads int
	// Database is the writers', where the position is committed: in the repository's row, or in a checkpoint
	// if the repository is elsewhere (rule C18).
	Database tx.Database
	// Attr is each chunk's isolation and timeout; no propagation.
	Attr tx.Attr
	// Timeout is the time after which the step fails; 0 means none.
	Timeout time.Duration
	// Assemble makes the components of one step execution.
	Assemble func(ctx context.Context, run *model.StepRun) (Parts, error)

	// Targets returns targets only one writer may write, such as file names, without making them.
	Targets func(ctx context.Context, run *model.StepRun) ([]string, error)

	// CreatesTargets: a writer is an item.PartsPreparer.
	CreatesTargets bool

	Retry Retry
	// Skip decides which items may be skipped; nil means none.
	Skip SkipPolicy
	// Transient reports a failed transaction that is not its items' fault, such as a deadlock: retried, never
	// skipped (rule C7). phase is PhaseWrite, or PhaseProcess inside the transaction.
	Transient func(phase core.Phase, err error) bool
	// Isolate is IsolateEach unless set.
	Isolate Isolation
	// KeepOutputs reuses outputs in a retry or split (job file: reprocess: false).
	KeepOutputs bool
	// ProcessInTransaction runs the processors inside the chunk's transaction.
	ProcessInTransaction bool
	// Concurrency is the number of processing goroutines; 0 and 1 mean the step's own. Order, counters and
	// restart are the same (rule C17). Excludes processors with a position (rule C4a).
	Concurrency int
	// ReadAhead is ReadAheadAuto unless set.
	ReadAhead ReadAhead
	// Listeners makes a step execution's listeners, of any interface of core/listener.go but the job's.
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
	// Expect must hold at the end, or the step fails; commits stay.
	Expect  *model.Condition
	Promote *model.Promotion
	// Classify names an error's class; nil means exception.ClassOf.
	Classify func(error) string
}

// Parts are the components of one step execution.
type Parts struct {
	Reader     item.Reader
	Processors []item.Processor
	// Writers all get every chunk, in order, in one transaction.
	Writers []item.Writer
	// Listeners follow Config.Listeners, too late for BeforeStep and AfterStep (rule C16b).
	Listeners []any
	// Bound are outside values that determine the input and each target, the reader's first, compared with the
	// last commit's (rule C15x). Missing ones are not compared.
	Bound []Bound
}

// Bound are values from parameters, the environment or earlier steps.
type Bound struct {
	// Hash stands for the values; empty means none.
	Hash string
	// Of names the component, Names each value, for messages.
	Of    string
	Names []string
}

// Step is a chunk step: a [model.Step].
type Step struct {
	config Config
	tx     *tx.Manager
}

// ChunkStep is Step, as Spring Batch calls it.
type ChunkStep = Step

// New checks the configuration and lists all errors.
func New(config Config) (*Step, error) {
	if config.Size == 0 {
		config.Size = DefaultSize
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
	if !s.config.CreatesTargets {
		return nil
	}
	parts, err := s.assemble(ctx, run)
	if err != nil {
		return err
	}
	return s.tx.Do(ctx, s.config.Attr, func(ctx context.Context) error {
		for _, w := range parts.Writers {
			p := optional[item.PartsPreparer](w.Component())
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

// Execute runs from run.Step.Position to the end of the data. It returns nil when all is committed,
// core.ErrStopped after a chunk on a stop, otherwise the failure: uncommitted work is rolled back (rule C9).
func (s *Step) Execute(ctx context.Context, run *model.StepRun) (err error) {
	if err := run.UseDatabase(ctx, s.config.Database.Name()); err != nil {
		return err
	}
	defer func() { err = run.SyncHistory(ctx, err) }()
	if run.Data.NewDefinition && len(run.Step.Position) > 0 {
		return fmt.Errorf("step %s: %w", run.Step.Name, ports.ErrCommittedMeanwhile)
	}
	if c := run.Step.Context; c != nil {
		c.Delete(core.ErrorClassKey)
		c.Delete(core.ErrorItemKey)
	}
	at, err := parsePosition(run.Step.Position)
	if err != nil {
		return err
	}
	parts, err := s.assemble(ctx, run)
	if err != nil {
		return err
	}
	if err := at.bind(parts.Bound, run.Data.AcceptChanges); err != nil {
		return err
	}
	p, err := newPipeline(s, run, parts)
	if err != nil {
		return err
	}
	values := make([]any, len(p.components))
	for i, c := range p.components {
		values[i] = c.value
	}
	if err := run.Join(ctx, values); err != nil {
		return err
	}
	defer func() { err = p.close(ctx, err) }()
	if err := p.open(ctx, at); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	return p.checkLeftOut()
}

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

// (rule C13)
func guarded(call func() error) error { return exception.Guard(call) }
