package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/jobfile/define"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Jobs in Go, from package define.
type (
	Job         = define.Job
	Flow        = define.Flow
	Chunk       = define.Chunk
	Tasks       = define.Tasks
	With        = define.With
	On          = map[string]define.Target
	Parameter   = define.Parameter
	Calendar    = define.Calendar
	Config      = define.Config
	Component   = define.Component
	Transaction = define.Transaction
	Partitioned = define.Partition
	Schedule    = define.Schedule
	Budget      = task.Budget
)

// NewJob begins a job in Go; [Jobs] registers it.
func NewJob(name string) *Job { return define.NewJob(name) }

// NewFlow begins a flow for a branch, a flow in the flow, an atomic group or Finally.
func NewFlow() *Flow { return define.NewFlow() }

// Use returns a component by name, with its configuration: a Config, its configuration struct, or the value of
// its main key.
func Use(name string, config ...any) Component { return define.Use(name, config...) }

// ReaderOf is a reader of T. constructor is as in Reader, without a Config, and is called for every step
// execution and partition.
func ReaderOf[T any](constructor any) Component {
	if _, is := constructor.(ItemReader[T]); is {
		return define.Inline(define.Code{Kind: registry.KindReader, Err: fmt.Errorf("the reader is a value (%T) with a position, which executions would share: pass a constructor, func() %T", constructor, constructor)})
	}
	return inline(registry.KindReader, constructor, readerOf[T](), nil)
}

// ProcessorOf is a processor of I to O: a constructor, an ItemProcessor[I, O] shared by all executions, or a
// func(context.Context, I) (O, error).
func ProcessorOf[I, O any](processor any) Component {
	if f, is := processor.(func(context.Context, I) (O, error)); is {
		processor = processorFunc[I, O](f)
	}
	return inline(registry.KindProcessor, processor, processorOf[I, O](), nil)
}

// WriterOf is a writer of T: a constructor, a shared value, or a func(context.Context, []T) error.
func WriterOf[T any](writer any) Component {
	if f, is := writer.(func(context.Context, []T) error); is {
		writer = writerFunc[T](f)
	}
	return inline(registry.KindWriter, writer, writerOf[T](), nil)
}

// TaskletOf is a tasklet: a constructor, a shared value, or a func(context.Context, *StepContribution) error.
// about may include NoTransaction.
func TaskletOf(tasklet any, about ...About) Component {
	if f, is := tasklet.(func(context.Context, *StepContribution) error); is {
		tasklet = TaskletFunc(f)
	}
	return inline(registry.KindTasklet, tasklet, componentOf[core.Tasklet](), about)
}

// ListenerOf is a listener: a constructor or a shared value.
func ListenerOf(l any) Component { return inline(registry.KindListener, l, listener(), nil) }

// PartitionerOf is a partitioner: a constructor or a shared value. about declares the parts' values with Part.
func PartitionerOf(partitioner any, about ...About) Component {
	return inline(registry.KindPartitioner, partitioner, componentOf[core.Partitioner](), about)
}

// DeciderOf is a decider: a constructor, a value, or a func(context.Context, *View) (string, error).
func DeciderOf(decider any) Component {
	if f, is := decider.(func(context.Context, *View) (string, error)); is {
		decider = DeciderFunc(f)
	}
	return inline(registry.KindDecider, decider, componentOf[core.Decider](), nil)
}

// To leads to an element of the same flow.
func To(element string) define.Target { return define.To(element) }

// End ends a flow COMPLETED; exit is the exit code, if it differs.
func End(exit string) define.Target { return define.End(exit) }

// Fail ends a flow FAILED; see End.
func Fail(exit string) define.Target { return define.Fail(exit) }

// Stop stops the job; a restart continues at the element restart.
func Stop(restart, message string) define.Target { return define.Stop(restart, message) }

// If is a choice of a decision.
func If(condition string, target define.Target) define.Choice { return define.If(condition, target) }

// Else is the last choice of a decision.
func Else(target define.Target) define.Choice { return define.Else(target) }

type processorFunc[I, O any] func(ctx context.Context, item I) (O, error)

func (f processorFunc[I, O]) Process(ctx context.Context, item I) (O, error) { return f(ctx, item) }

type writerFunc[T any] func(ctx context.Context, items []T) error

func (f writerFunc[T]) Write(ctx context.Context, items []T) error { return f(ctx, items) }

type code struct {
	sig         signature
	about       []About
	value       any
	constructor constructor
}

func inline(kind registry.Kind, given any, sig signature, about []About) Component {
	made := code{sig: sig, about: about}
	c := define.Code{Kind: kind}
	if given != nil && sig.fits(reflect.TypeOf(given)) == nil {
		made.value, c.Type = given, fmt.Sprintf("%T", given)
		if isNil(given) {
			c.Err = fmt.Errorf("the %s is a nil %T", kind, given)
		}
	} else {
		made.constructor, c.Err = inspect(given, sig.fits)
		switch {
		case c.Err != nil:
		case made.constructor.config != nil:
			c.Err = fmt.Errorf("the constructor takes a %v, which a job in Go does not provide: use a closure", made.constructor.config)
		default:
			c.Type = made.constructor.fn.Type().Out(0).String()
		}
	}
	c.Made = made
	return define.Inline(c)
}

// Jobs registers jobs in Go: they run by their names, and a restart finds them. A wrong job is an error of
// New. Jobs that share a child job go into one call.
func Jobs(list ...*Job) fx.Option {
	opts := []fx.Option{fx.Provide(fx.Annotate(func() []*Job { return list }, fx.ResultTags(groupJobs)))}
	known := map[string]bool{}
	for _, j := range list {
		for _, c := range j.Code() {
			made, ok := c.Made.(code)
			if c.Err != nil || !ok || known[string(c.Kind)+c.Name] {
				continue // Load reports it
			}
			known[string(c.Kind)+c.Name] = true
			opts = append(opts, made.option(c))
		}
	}
	return fx.Options(opts...)
}

func (c code) option(named define.Named) fx.Option {
	description := describe(named.Kind, named.Name, c.sig, c.about)
	description.Summary = "Go code: " + named.Type
	description.Config = reflect.TypeFor[define.CodeConfig]()
	if c.value == nil {
		return provide(description, c.constructor, c.sig)
	}
	return fx.Options(
		fx.Provide(fx.Annotate(func() []registry.Component { return []registry.Component{description} }, fx.ResultTags(groupDescribed))),
		fx.Provide(fx.Annotate(func() []registry.Component {
			built := description
			built.New = func(context.Context, any, registry.BuildContext) (any, error) {
				component, ok := c.sig.erase(c.value)
				if !ok {
					return nil, errors.New("the value is nil")
				}
				return component, nil
			}
			return []registry.Component{built}
		}, fx.ResultTags(groupComponents))),
	)
}

// CheckJobs reports the errors of Jobs without an App. opts register components used by name.
func CheckJobs(list []*Job, opts ...fx.Option) error {
	_, _, err := Describe(append(opts[:len(opts):len(opts)], Jobs(list...))...)
	return err
}
