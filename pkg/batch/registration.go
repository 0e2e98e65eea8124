package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// fx value groups of what observes running jobs.
const (
	groupObservers = `group:"surfin.observers,flatten"`
	groupLogs      = `group:"surfin.logs,flatten"`
)

// Reader registers a reader of T under name. constructor is func([Config,] deps...) (R, error) or without the
// error: R implements ItemReader[T], Config has the field tags of registry.Component, fx provides deps, one of
// which may be the [BuildContext]. Another form is an error at start.
func Reader[T any](name string, constructor any, about ...About) fx.Option {
	return register(registry.KindReader, name, constructor, about, readerOf[T]())
}

func readerOf[T any]() signature {
	return signature{
		types: func(in item.Type) (item.Type, error) { return item.TypeOf[T](""), nil },
		erase: func(made any) (any, bool) { r, ok := made.(ItemReader[T]); return item.EraseReader(r), ok },
		fits:  implements[ItemReader[T]],
	}
}

// Processor registers a processor of I to O under name; see Reader.
func Processor[I, O any](name string, constructor any, about ...About) fx.Option {
	return register(registry.KindProcessor, name, constructor, about, processorOf[I, O]())
}

func processorOf[I, O any]() signature {
	return signature{
		types: func(in item.Type) (item.Type, error) {
			return item.TypeOf[O](""), item.Assignable(in, item.TypeOf[I](""))
		},
		erase: func(made any) (any, bool) { p, ok := made.(ItemProcessor[I, O]); return item.EraseProcessor(p), ok },
		fits:  implements[ItemProcessor[I, O]],
	}
}

// Writer registers a writer of T under name; see Reader.
func Writer[T any](name string, constructor any, about ...About) fx.Option {
	return register(registry.KindWriter, name, constructor, about, writerOf[T]())
}

func writerOf[T any]() signature {
	return signature{
		types: func(in item.Type) (item.Type, error) { return in, item.Assignable(in, item.TypeOf[T]("")) },
		erase: func(made any) (any, bool) { w, ok := made.(ItemWriter[T]); return item.EraseWriter(w), ok },
		fits:  implements[ItemWriter[T]],
	}
}

func componentOf[T any]() signature {
	return signature{
		erase: func(made any) (any, bool) { t, ok := made.(T); return t, ok },
		fits:  implements[T],
	}
}

// Tasklet registers a tasklet under name; see Reader.
func Tasklet(name string, constructor any, about ...About) fx.Option {
	return register(registry.KindTasklet, name, constructor, about, componentOf[core.Tasklet]())
}

// Partitioner registers a core.Partitioner under name; see Reader. [Part] declares the parts' values, for
// expressions such as ${part.from}.
func Partitioner(name string, constructor any, about ...About) fx.Option {
	return register(registry.KindPartitioner, name, constructor, about, componentOf[core.Partitioner]())
}

// Decider registers a core.Decider under name, which returns a decision's exit code; see Reader.
func Decider(name string, constructor any, about ...About) fx.Option {
	return register(registry.KindDecider, name, constructor, about, componentOf[core.Decider]())
}

// Listener registers a listener under name: at least one interface of core/listener.go. See Reader.
func Listener(name string, constructor any, about ...About) fx.Option {
	return register(registry.KindListener, name, constructor, about, listener())
}

func listener() signature {
	return signature{
		erase: func(made any) (any, bool) { return made, !isNil(made) },
		fits: func(t reflect.Type) error {
			if !model.Listens(t) {
				return fmt.Errorf("%v, which implements no listener interface (package core: BeforeJob, AfterStep, AfterChunk, OnSkipRead, ...)", t)
			}
			return nil
		},
	}
}

// Matchers lets the `errors` and `except` of job files name error classes of the application:
//
//	batch.Matchers(batch.Matcher{
//		Name: "quota", Parent: "transient",
//		Match: func(err error) bool { return errors.Is(err, api.ErrQuota) },
//	})
func Matchers(list ...Matcher) fx.Option {
	return fx.Provide(fx.Annotate(func() []Matcher { return list }, fx.ResultTags(assembly.GroupMatchers)))
}

// Item lets job files use the Go type T: `item: name`. See item.TypeOf.
func Item[T any](name string) fx.Option {
	item := registry.NamedItem{Name: name, Type: item.TypeOf[T](name)}
	return fx.Provide(fx.Annotate(func() []registry.NamedItem { return []registry.NamedItem{item} }, fx.ResultTags(assembly.GroupItems)))
}

// Migrations offers migrations for `source: NAME` of the tasklet migration.
func Migrations(sources ...migration.Source) fx.Option {
	return fx.Provide(fx.Annotate(func() []migration.Source { return sources }, fx.ResultTags(assembly.GroupMigrations)))
}

// Log sets the logger of running jobs (adaptor/observe/slog); nil means none. The default is slog.Default().
func Log(log *slog.Logger) fx.Option {
	return fx.Provide(fx.Annotate(func() []*slog.Logger { return []*slog.Logger{log} }, fx.ResultTags(groupLogs)))
}

// LogHandler returns next for an application's own logger: what components log with the context of their call, from
// INFO on, is then in the log of their execution, too (surfin log). cli.Main does so for slog's default logger.
//
//	slog.SetDefault(slog.New(batch.LogHandler(slog.NewJSONHandler(os.Stderr, nil))))
func LogHandler(next slog.Handler) slog.Handler { return runlog.Handler(next) }

// Observe registers an observer of running jobs.
func Observe(o core.Observer) fx.Option {
	return fx.Provide(fx.Annotate(func() []core.Observer { return []core.Observer{o} }, fx.ResultTags(groupObservers)))
}

// About adds to a component's description, as `surfin describe` shows it.
type About func(*registry.Component)

// Summary is the one line shown in lists.
func Summary(line string) About { return func(c *registry.Component) { c.Summary = line } }

// NoTransaction declares that a tasklet needs no transaction around it.
func NoTransaction() About { return func(c *registry.Component) { c.NoTransaction = true } }

// Part declares that every part has a value of type T under key, put into its Context by the partitioner:
// string, int64, float64, bool, Date, time.Time or time.Duration. `name` and `index` are known without it.
func Part[T any](key string) About {
	return func(c *registry.Component) {
		before := c.Parts
		c.Parts = func(cfg any) (map[string]reflect.Type, error) {
			types := map[string]reflect.Type{}
			if before != nil {
				var err error
				if types, err = before(cfg); err != nil {
					return nil, err
				}
			}
			var zero T
			if err := core.NewExecutionContext().Put(key, zero); err != nil {
				return nil, fmt.Errorf("%s: a %v cannot be a value of a partition (allowed: string, int64, float64, bool, Date, time.Time, time.Duration)", key, reflect.TypeFor[T]())
			}
			types[key] = reflect.TypeFor[T]()
			return types, nil
		}
	}
}

type signature struct {
	types func(in item.Type) (item.Type, error)
	erase func(made any) (any, bool)
	fits  func(t reflect.Type) error
}

func implements[T any](t reflect.Type) error {
	if want := reflect.TypeFor[T](); !t.Implements(want) {
		return fmt.Errorf("%v, which is not a %v", t, want)
	}
	return nil
}

func isNil(made any) bool {
	v := reflect.ValueOf(made)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}

func register(kind registry.Kind, name string, constructor any, about []About, sig signature) fx.Option {
	c, err := inspect(constructor, sig.fits)
	if err != nil {
		return fx.Error(fmt.Errorf("%s %q: %w", kind, name, err))
	}
	description := describe(kind, name, sig, about)
	description.Config = c.config
	description.Positioned = kind == registry.KindProcessor && c.fn.Type().Out(0).Implements(reflect.TypeFor[item.Positioner]())
	return provide(description, c, sig)
}

func describe(kind registry.Kind, name string, sig signature, about []About) registry.Component {
	description := registry.Component{Kind: kind, Name: name}
	if sig.types != nil {
		description.Types = func(_ any, in item.Type) (item.Type, error) { return sig.types(in) }
	}
	for _, a := range about {
		a(&description)
	}
	return description
}

func provide(description registry.Component, c constructor, sig signature) fx.Option {
	return fx.Options(
		fx.Provide(fx.Annotate(func() []registry.Component { return []registry.Component{description} }, fx.ResultTags(assembly.GroupDescribed))),
		provideNeeds(c.needs(string(description.Kind), description.Name)),
		fx.Provide(fx.Annotate(c.provider(description, sig), c.optionalDeps(), fx.ResultTags(assembly.GroupComponents))),
	)
}

func (c constructor) needs(kind, name string) assembly.Needs {
	return assembly.Needs{Of: fmt.Sprintf("%s %q", kind, name), Types: c.deps}
}

func provideNeeds(n assembly.Needs) fx.Option {
	return fx.Supply(fx.Annotate(n, fx.ResultTags(assembly.GroupNeeds)))
}

type constructor struct {
	fn       reflect.Value
	config   reflect.Type
	deps     []reflect.Type
	contexts []int
	hasError bool
}

func inspect(fn any, fits func(reflect.Type) error) (constructor, error) {
	c := constructor{fn: reflect.ValueOf(fn)}
	if !c.fn.IsValid() || c.fn.Kind() != reflect.Func || c.fn.IsNil() {
		return c, fmt.Errorf("the constructor is a %T, not a function", fn)
	}
	t := c.fn.Type()
	errorType := reflect.TypeFor[error]()
	switch {
	case t.IsVariadic():
		return c, errors.New("the constructor must not be variadic")
	case t.NumOut() == 2 && t.Out(1) == errorType:
		c.hasError = true
	case t.NumOut() != 1:
		return c, fmt.Errorf("the constructor is %v; it must return the component, or the component and an error", t)
	}
	if err := fits(t.Out(0)); err != nil {
		return c, fmt.Errorf("the constructor returns %w", err)
	}
	for i := range t.NumIn() {
		in := t.In(i)
		switch {
		case in == reflect.TypeFor[BuildContext]():
			c.contexts = append(c.contexts, i)
		case i == 0 && in.Kind() == reflect.Struct && !isFxIn(in):
			c.config = in
		default:
			c.deps = append(c.deps, in)
		}
	}
	return c, nil
}

func isFxIn(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type == reflect.TypeFor[fx.In]() {
			return true
		}
	}
	return false
}

// optionalDeps makes dependencies optional: provider then reports a missing one with the component's name.
func (c constructor) optionalDeps() fx.Annotation {
	tags := make([]string, len(c.deps))
	for i, d := range c.deps {
		if d.Kind() == reflect.Pointer || d.Kind() == reflect.Interface || d.Kind() == reflect.Func || d.Kind() == reflect.Map {
			tags[i] = `optional:"true"`
		}
	}
	return fx.ParamTags(tags...)
}

func (c constructor) provider(described registry.Component, sig signature) any {
	out := []reflect.Type{reflect.TypeFor[[]registry.Component](), reflect.TypeFor[error]()}
	provider := reflect.MakeFunc(reflect.FuncOf(c.deps, out, false), func(deps []reflect.Value) []reflect.Value {
		err := reflect.Zero(out[1])
		if missing := c.missing(deps, string(described.Kind), described.Name); missing != nil {
			err = reflect.ValueOf(missing)
		}
		made := described
		made.New = func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return c.call(cfg, b, deps, sig)
		}
		return []reflect.Value{reflect.ValueOf([]registry.Component{made}), err}
	})
	return provider.Interface()
}

func (c constructor) missing(deps []reflect.Value, kind, name string) error {
	var missing []error
	for i, d := range deps {
		switch d.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Map:
			if d.IsNil() {
				missing = append(missing, c.needs(kind, name).Missing(c.deps[i]))
			}
		default: // fx itself reports a missing value
		}
	}
	return errors.Join(missing...)
}

func (c constructor) call(cfg any, b BuildContext, deps []reflect.Value, sig signature) (any, error) {
	args := make([]reflect.Value, 0, len(deps)+1)
	if c.config != nil {
		args = append(args, reflect.Indirect(reflect.ValueOf(cfg)))
	}
	args = append(args, deps...)
	for _, place := range c.contexts {
		args = slices.Insert(args, place, reflect.ValueOf(b))
	}
	out := c.fn.Call(args)
	if c.hasError && !out[1].IsNil() {
		return nil, out[1].Interface().(error) //nolint:forcetypeassert // its type is error
	}
	answer := out[0].Interface()
	made, ok := sig.erase(answer)
	if !ok || isNil(answer) { // a nil pointer satisfies an interface, and fails when it is called
		return nil, errors.New("the constructor returned nil")
	}
	return made, nil
}
