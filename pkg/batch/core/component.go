package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// ComponentKind is the role of a component in a job file.
type ComponentKind string

// The kinds of component.
const (
	KindReader    ComponentKind = "reader"
	KindProcessor ComponentKind = "processor"
	KindWriter    ComponentKind = "writer"
	KindTasklet   ComponentKind = "tasklet"
	KindListener  ComponentKind = "listener"
	// KindPartitioner makes a Partitioner, KindDecider a Decider.
	KindPartitioner ComponentKind = "partitioner"
	KindDecider     ComponentKind = "decider"
)

// ComponentKinds returns all kinds: those of the pipeline in its order, then the
// others.
func ComponentKinds() []ComponentKind {
	return []ComponentKind{KindReader, KindProcessor, KindWriter, KindTasklet, KindListener, KindPartitioner, KindDecider}
}

// Component describes a component: enough to list it, to check a job file that
// uses it and to generate its reference page, without building anything else. It
// reaches the registry as an fx value group.
//
// Config is a struct type whose fields carry tags: `key:"path"` the name in the
// job file, `doc:"..."`, `default:"..."`, `required:"true"`, `enum:"a,b"`,
// `main:"true"` for the one field that may be given directly (`filter: ...`),
// `path:"true"` for a text that is a path relative to the job file, with
// `output:"true"` for a file that this writer alone writes,
// `literal:"true"` for a text in which ${...} is not evaluated, as in a script
// that has a ${...} of its own, `rest:"true"` for the one [Expressions] or map that takes all keys of no other field (`map:
// {only: true, id: item.id}`; its `key` is for the reference only). Fields may be
// strings, bools, ints, floats, time.Duration, [Size], lists and maps of these,
// nested structs, [ItemType] (a name or an inline map), [SQL], [Expression] and
// [Expressions]. It may implement Validate() error.
type Component struct {
	Kind ComponentKind
	Name string
	// Summary is one line; Doc is more, in Markdown.
	Summary string
	Doc     string
	// Example is a few lines of YAML for the reference page; CI loads it.
	Example string
	// Config is the struct type of the configuration; nil: none.
	Config reflect.Type
	// NoTransaction says that a tasklet works on connections of its own or on no
	// database: its step's propagation is NOT_SUPPORTED unless the job file says more.
	NoTransaction bool
	// Types answers the component's output type at load: for a reader in is nil;
	// for a writer the answer is ignored (return in). cfg is a pointer to Config
	// with what is not late-bound decoded. An error refuses the job file at the
	// component's position, or at the key of a *ConfigError.
	Types func(cfg any, in ItemType) (out ItemType, err error)
	// Parts answers, for a partitioner, the Go types of what ${part.NAME} reads, by
	// name, besides `name` (string) and `index` (int64), which every partition has.
	// Types are those of an ExecutionContext: string, int64, float64, bool, Date,
	// time.Time, time.Duration. cfg as for Types.
	Parts func(cfg any) (map[string]reflect.Type, error)
}

// Factory makes instances of a component, one per step execution.
type Factory struct {
	Kind ComponentKind
	Name string
	// New returns a Reader, Processor, Writer, Tasklet, or a listener of any interface
	// of listener.go; cfg is a pointer to the component's Config with everything
	// decoded and bound.
	New func(ctx context.Context, cfg any, use Use) (any, error)
}

// Use tells a factory where its instance is used.
type Use struct {
	Job, Step string
	Execution JobExecutionID
	// Database is the name of the database that SQL components use unless their
	// config names another.
	Database string
	// Attempt tells in which attempt of its step a reader, processor or writer works;
	// nil where there is none, as for a listener of the job.
	Attempt func(ctx context.Context) (Attempt, error)
	// In is the type of the items handed in (processor, writer); Out of those
	// handed out (reader, processor), as Types answered.
	In, Out ItemType
	// FileMode are the permissions of files that the component makes (the setting
	// files.mode); 0: 0600.
	FileMode fs.FileMode
}

// DatabaseOr returns the name of the database that a SQL component uses whose
// config says name.
func (u Use) DatabaseOr(name string) string {
	if name == "" {
		return u.Database
	}
	return name
}

// ConfigError is an error of Types or Validate about one key of the config, so
// that it is reported at that key's position. Key is a path such as "item" or
// "columns.id".
type ConfigError struct {
	Key string
	Err error
}

// Error names the key.
func (e *ConfigError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// Size is a number of bytes, written as 512, 64KB, 10MB or 1GB (powers of 1024).
type Size int64

// SQL is a statement whose ${...} became bind variables: Parts are the text
// around them, one more than Args. It is never spliced.
type SQL struct {
	Parts []string
	Args  []any
}

// Render joins the parts with the dialect's placeholders; placeholder is told the
// 1-based number of the variable.
func (s SQL) Render(placeholder func(n int) string) (text string, args []any) {
	var b strings.Builder
	for i, part := range s.Parts {
		if i > 0 {
			b.WriteString(placeholder(i))
		}
		b.WriteString(part)
	}
	return b.String(), s.Args
}

// String is the text with ? for each variable, for messages.
func (s SQL) String() string {
	text, _ := s.Render(func(int) string { return "?" })
	return text
}

// IsZero reports whether there is no statement.
func (s SQL) IsZero() bool { return len(s.Parts) == 0 }

// Expression is a bare expression over `item`, `meta` and `params`, evaluated
// once per item by the component that has it in its config. Env holds the values
// of the launch that it may use.
type Expression struct {
	Text string
	Env  ExpressionEnv
}

// NamedExpression is one entry of Expressions.
type NamedExpression struct {
	Name string
	Expression
}

// Expressions are named expressions in the order written.
type Expressions []NamedExpression

// ExpressionEnv is what expressions may read besides the item: the job's
// parameters and names.
type ExpressionEnv struct {
	// Types maps a variable path ("params", then name) to its Go type; it is there
	// at load already.
	Types map[string]map[string]reflect.Type
	// Values has the same shape; nil at load.
	Values map[string]map[string]any
}

// Registry is the sorted set of components that an application has.
type Registry struct {
	components map[componentKey]Component
	factories  map[componentKey]Factory
	items      map[string]ItemType
	matchers   *exception.Matchers
}

type componentKey struct {
	kind ComponentKind
	name string
}

// NamedItem is an ItemType that job files may use by name.
type NamedItem struct {
	Name string
	Type ItemType
}

// NewRegistry checks and indexes descriptors. Every name that is there twice for
// one kind is refused, all of them together.
func NewRegistry(components []Component, items []NamedItem) (*Registry, error) {
	r := &Registry{components: map[componentKey]Component{}, factories: map[componentKey]Factory{}, items: map[string]ItemType{}}
	var errs []error
	for _, c := range components {
		key := componentKey{c.Kind, c.Name}
		if _, twice := r.components[key]; twice {
			errs = append(errs, fmt.Errorf("%s %q is registered twice", c.Kind, c.Name))
			continue
		}
		if c.Config != nil && c.Config.Kind() != reflect.Struct {
			errs = append(errs, fmt.Errorf("%s %q: its config is a %v, not a struct", c.Kind, c.Name, c.Config))
		}
		r.components[key] = c
	}
	for _, it := range items {
		if _, twice := r.items[it.Name]; twice {
			errs = append(errs, fmt.Errorf("item type %q is registered twice", it.Name))
		}
		r.items[it.Name] = it.Type
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return r, errors.Join(errs...)
}

// WithFactories returns a registry that can also build; every factory needs its
// descriptor, and every descriptor its factory.
func (r *Registry) WithFactories(factories []Factory) (*Registry, error) {
	out := &Registry{components: r.components, items: r.items, matchers: r.matchers, factories: map[componentKey]Factory{}}
	var errs []error
	for _, f := range factories {
		key := componentKey{f.Kind, f.Name}
		if _, ok := r.components[key]; !ok {
			errs = append(errs, fmt.Errorf("%s %q has a factory but no description", f.Kind, f.Name))
		}
		out.factories[key] = f
	}
	for key := range r.components {
		if _, ok := out.factories[key]; !ok {
			errs = append(errs, fmt.Errorf("%s %q has no factory", key.kind, key.name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return out, errors.Join(errs...)
}

// WithMatchers returns a registry whose job files may name these error classes.
func (r *Registry) WithMatchers(m *exception.Matchers) *Registry {
	return &Registry{components: r.components, factories: r.factories, items: r.items, matchers: m}
}

// Matchers returns the error classes that job files may name; none unless
// WithMatchers gave some.
func (r *Registry) Matchers() *exception.Matchers {
	if r.matchers == nil {
		return &exception.Matchers{}
	}
	return r.matchers
}

// Component returns the description of a component.
func (r *Registry) Component(kind ComponentKind, name string) (Component, bool) {
	c, ok := r.components[componentKey{kind, name}]
	return c, ok
}

// Factory returns the factory of a component.
func (r *Registry) Factory(kind ComponentKind, name string) (Factory, bool) {
	f, ok := r.factories[componentKey{kind, name}]
	return f, ok
}

// Components returns all descriptions, by kind in pipeline order, then by name.
func (r *Registry) Components() []Component {
	var list []Component
	for _, kind := range ComponentKinds() {
		var of []Component
		for key, c := range r.components {
			if key.kind == kind {
				of = append(of, c)
			}
		}
		slices.SortFunc(of, func(a, b Component) int { return strings.Compare(a.Name, b.Name) })
		list = append(list, of...)
	}
	return list
}

// Names returns the names of one kind, sorted.
func (r *Registry) Names(kind ComponentKind) []string {
	var names []string
	for key := range r.components {
		if key.kind == kind {
			names = append(names, key.name)
		}
	}
	slices.Sort(names)
	return names
}

// Item returns the item type that was registered under name.
func (r *Registry) Item(name string) (ItemType, bool) {
	t, ok := r.items[name]
	return t, ok
}

// ItemNames returns the names of all registered item types, sorted.
func (r *Registry) ItemNames() []string {
	var names []string
	for name := range r.items {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
