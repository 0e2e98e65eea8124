package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DefaultSize is the number of items per chunk where none is given.
const DefaultSize = 1000

// Config describes a chunk step.
type Config struct {
	Name string
	// Size is the number of items read per chunk; 0 means DefaultSize.
	Size int
	// Database is where the writers write and the position is kept; it must be the
	// database of the repository that runs the step.
	Database tx.Database
	// Timeout ends the step with a failure when it is over; 0: none.
	Timeout time.Duration
	// Assemble makes the components of one step execution.
	Assemble func(ctx context.Context, run *core.StepRun) (Parts, error)
}

// Parts are the components of one step execution, made for it alone.
type Parts struct {
	Reader     core.Reader
	Processors []core.Processor
	// Writers all get every chunk, in order, in one transaction.
	Writers []core.Writer
}

// Step is a chunk step: a [core.Step].
type Step struct {
	config Config
	tx     *tx.Manager
}

// New checks the configuration.
func New(config Config) (*Step, error) {
	if config.Size == 0 {
		config.Size = DefaultSize
	}
	switch {
	case config.Name == "":
		return nil, errors.New("a chunk step needs a name")
	case config.Size < 0:
		return nil, fmt.Errorf("chunk step %s: size %d is less than 1", config.Name, config.Size)
	case config.Database == nil:
		return nil, fmt.Errorf("chunk step %s needs a database", config.Name)
	case config.Assemble == nil:
		return nil, fmt.Errorf("chunk step %s has nothing to assemble", config.Name)
	}
	return &Step{config: config, tx: tx.NewManager(config.Database)}, nil
}

// Name is the step's name in its flow.
func (s *Step) Name() string { return s.config.Name }

// Kind is "chunk".
func (s *Step) Kind() string { return "chunk" }

// Timeout is the configured limit; 0 means none.
func (s *Step) Timeout() time.Duration { return s.config.Timeout }

// Execute runs the step from run.Step.Position to the end of its data. It
// returns nil when all items are committed, core.ErrStopped after a chunk if a
// stop was asked for, and otherwise the error that made it fail; the chunk in
// hand is then rolled back and the position is that of the last commit (rule C9).
func (s *Step) Execute(ctx context.Context, run *core.StepRun) (err error) {
	if got, want := run.Checkpoints.Database(), s.config.Database.Name(); got != want {
		return fmt.Errorf("chunk step %s writes to database %s, but its checkpoints live in %s: both must be one database", s.Name(), want, got)
	}
	at, err := parsePosition(run.Step.Position)
	if err != nil {
		return err
	}
	var parts Parts
	if err := guarded(func() (err error) { parts, err = s.config.Assemble(ctx, run); return err }); err != nil {
		return err
	}
	p, err := newPipeline(s, run, parts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if err := p.open(ctx, at); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	return p.finish(ctx)
}

// run moves chunk by chunk until the data ends.
func (p *pipeline) run(ctx context.Context) error {
	for {
		if p.exec.Stopping() {
			return core.ErrStopped
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		last, err := p.chunk(ctx)
		if err != nil {
			p.failed(ctx, err)
			return err
		}
		if last {
			return nil
		}
	}
}

// chunk reads, processes and commits one chunk; last says that the data ended.
func (p *pipeline) chunk(ctx context.Context) (last bool, err error) {
	began := time.Now()
	p.begin()
	if err := p.read(ctx); err != nil {
		if !errors.Is(err, io.EOF) {
			return false, err
		}
		last = true
	}
	if p.items.Len() == 0 {
		return last, nil // an empty last chunk makes no commit (rule C5)
	}
	next, err := p.nextPosition()
	if err != nil {
		return false, err
	}
	if err := p.process(ctx); err != nil {
		return false, err
	}
	if err := p.commit(ctx, next); err != nil {
		return false, err
	}
	p.exec.Observer.Observe(ctx, core.ChunkCommitted{
		Step: p.step.Name(), StepID: p.exec.Step.ID, Counters: p.exec.Step.Counters, Took: time.Since(began),
	})
	return last, nil
}
