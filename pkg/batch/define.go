package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Config is a component's configuration, by the keys of job files.
type Config map[string]any

// Component is a reader, processor, writer, tasklet, listener, partitioner or decider in a job in Go: a shipped or
// registered one ([Use]) or Go code ([ReaderOf], [ProcessorOf], ...).
type Component struct {
	name   string
	config any
	inline *code
}

func (c Component) isZero() bool { return c.name == "" && c.inline == nil }

// Use returns a component by its name. config is a [Config], the value of the main key, or a struct with the tags of
// its configuration; zero fields are left out.
func Use(name string, config ...any) Component {
	c := Component{name: name}
	if len(config) > 0 {
		c.config = config[0]
	}
	return c
}

// ReaderOf is a reader of T. constructor is as in Reader, without a Config, and is called for every step
// execution and partition.
func ReaderOf[T any](constructor any) Component {
	if _, is := constructor.(ItemReader[T]); is {
		return Component{inline: &code{kind: registry.KindReader, err: fmt.Errorf("the reader is a value (%T) with a position, which executions would share: pass a constructor, func() %T", constructor, constructor)}}
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

// Process is a processor: f, which must be safe for concurrent use.
func Process[I, O any](f func(ctx context.Context, item I) (O, error)) Component {
	return ProcessorOf[I, O](f)
}

// Write is a writer: f, which must be safe for concurrent use. ctx has the transaction of the chunk.
func Write[T any](f func(ctx context.Context, items []T) error) Component { return WriterOf[T](f) }

// Do is a tasklet: f, which must be safe for concurrent use.
func Do(f func(ctx context.Context, c *StepContribution) error) Component { return TaskletOf(f) }

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

type processorFunc[I, O any] func(ctx context.Context, item I) (O, error)

func (f processorFunc[I, O]) Process(ctx context.Context, item I) (O, error) { return f(ctx, item) }

type writerFunc[T any] func(ctx context.Context, items []T) error

func (f writerFunc[T]) Write(ctx context.Context, items []T) error { return f(ctx, items) }

// code is a component that is Go code: a value, or a constructor.
type code struct {
	kind registry.Kind
	// typ is the Go type: another one is another definition (rule F4).
	typ         string
	err         error
	sig         signature
	about       []About
	value       any
	constructor constructor
}

// namedCode has the name by which the definition uses the code.
type namedCode struct {
	name string
	code
}

type codeConfig struct {
	Type string `key:"go" main:"true" literal:"true" doc:"The Go type."`
}

func inline(kind registry.Kind, given any, sig signature, about []About) Component {
	c := &code{kind: kind, sig: sig, about: about}
	if given != nil && sig.fits(reflect.TypeOf(given)) == nil {
		c.value, c.typ = given, fmt.Sprintf("%T", given)
		if isNil(given) {
			c.err = fmt.Errorf("the %s is a nil %T", kind, given)
		}
		return Component{inline: c}
	}
	c.constructor, c.err = inspect(given, sig.fits)
	switch {
	case c.err != nil:
	case c.constructor.config != nil:
		c.err = fmt.Errorf("the constructor takes a %v, which a job in Go does not provide: use a closure", c.constructor.config)
	default:
		c.typ = c.constructor.fn.Type().Out(0).String()
	}
	return Component{inline: c}
}

// Jobs registers jobs in Go: they run by their names, and a restart finds them. A wrong job is an error of
// New. Jobs that share a child job go into one call.
func Jobs(list ...*Job) fx.Option {
	opts := []fx.Option{definitions(list, func(j *Job) assembly.Definition { return definition{j} })}
	known := map[string]bool{}
	for _, j := range list {
		for _, c := range j.code() {
			if c.err != nil || known[string(c.kind)+c.name] {
				continue // load reports it
			}
			known[string(c.kind)+c.name] = true
			opts = append(opts, c.option())
		}
	}
	return fx.Options(opts...)
}

func (c namedCode) option() fx.Option {
	description := describe(c.kind, c.name, c.sig, c.about)
	description.Summary = "Go code: " + c.typ
	description.Config = reflect.TypeFor[codeConfig]()
	if c.value == nil {
		return provide(description, c.constructor, c.sig)
	}
	return fx.Options(
		fx.Provide(fx.Annotate(func() []registry.Component { return []registry.Component{description} }, fx.ResultTags(assembly.GroupDescribed))),
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
		}, fx.ResultTags(assembly.GroupComponents))),
	)
}

// definition is a job in Go, as a registered job.
type definition struct{ *Job }

func (d definition) Load(r *registry.Registry) (*jobfile.File, error) { return d.load(r) }

func definitions[T any](list []T, of func(T) assembly.Definition) fx.Option {
	return fx.Provide(fx.Annotate(func() []assembly.Definition {
		all := make([]assembly.Definition, len(list))
		for i, d := range list {
			all[i] = of(d)
		}
		return all
	}, fx.ResultTags(assembly.GroupDefinitions)))
}

// JobFiles registers job files by their jobs' names (RunRequest.Name), so a restart in another process finds
// them: for files in the program, such as an embed.FS. A wrong file is an error of New.
func JobFiles(sources ...Source) fx.Option {
	return definitions(sources, func(s Source) assembly.Definition { return s })
}

// CheckJobs reports the errors of Jobs, without an App and a database. opts register components used by name, and
// provide the dependencies of all: a missing one is an error, too. It builds none of them.
func CheckJobs(list []*Job, opts ...fx.Option) error {
	whole := append(opts[:len(opts):len(opts)], Jobs(list...))
	if _, _, err := assembly.Describe(whole...); err != nil {
		return err
	}
	return assembly.CheckNeeds(Module(Settings{}), whole...)
}
