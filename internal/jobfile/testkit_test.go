package jobfile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type apple struct{ ID int }
type pear struct{ ID int }

type countConfig struct {
	From  int           `key:"from" default:"1" doc:"The first number."`
	To    int           `key:"to" required:"true" doc:"The last number."`
	Label string        `key:"label" default:"n" doc:"A text in every row."`
	Pause time.Duration `key:"pause" doc:"Not used."`
	Item  item.Type     `key:"item" doc:"The type of the items."`
}

func (c *countConfig) Validate() error {
	if c.To < c.From {
		return &registry.ConfigError{Key: "to", Err: fmt.Errorf("%d is less than from", c.To)}
	}
	return nil
}

type keepConfig struct {
	When registry.Expression `key:"when" main:"true" required:"true" doc:"Items for which it is false are filtered out."`
}

type setConfig struct {
	Only   bool                 `key:"only" default:"false" doc:"Keep nothing else."`
	Fields registry.Expressions `key:"fields" rest:"true" doc:"The value of each field."`
}

type sinkConfig struct {
	Name     string `key:"name" main:"true" required:"true" doc:"A name."`
	Mode     string `key:"mode" enum:"insert,upsert" default:"insert" doc:"How to write."`
	Database string `key:"database" doc:"The database."`
}

type bombConfig struct {
	N int `key:"n" main:"true" doc:"A number."`
}

func (c *bombConfig) Validate() error { return fmt.Errorf("%d", 100/c.N) }

type noteConfig struct {
	Text  string            `key:"text" main:"true" doc:"A text."`
	Path  string            `key:"path" path:"true" doc:"A file."`
	Paths []string          `key:"paths" path:"true" doc:"Files."`
	Count int               `key:"count" doc:"A number."`
	Small int8              `key:"small" doc:"A small number."`
	Many  uint16            `key:"many" doc:"A number that is not negative."`
	Ratio float64           `key:"ratio" doc:"A fraction."`
	On    bool              `key:"on" doc:"A switch."`
	Wait  time.Duration     `key:"wait" doc:"A time."`
	Limit registry.Size     `key:"limit" default:"64KB" doc:"A size."`
	Args  []string          `key:"args" doc:"Words."`
	Env   map[string]string `key:"env" doc:"Values by name."`
	Code  string            `key:"code" literal:"true" doc:"A text with a ${...} of its own."`
	SQL   registry.SQL      `key:"sql" doc:"A statement."`
	Inner noteInner         `key:"inner" doc:"More."`
	Out   item.Type         `key:"out" doc:"The types of the results."`
	Maybe *int              `key:"maybe" doc:"A number, or none."`
}

type watchConfig struct {
	Note string `key:"note" main:"true" default:"seen" doc:"A word before each note."`
}

type chaptersConfig struct {
	Names []string `key:"names" main:"true" required:"true" doc:"The parts."`
	Width int      `key:"width" default:"2" doc:"How many numbers a part counts."`
}

type coinConfig struct {
	Side string `key:"side" main:"true" required:"true" doc:"The answer."`
}

type noteInner struct {
	Level string `key:"level" default:"low" enum:"low,high" doc:"A level."`
	Names []int  `key:"names" default:"[1, 2]" doc:"Numbers."`
}

type bench struct {
	mu     sync.Mutex
	notes  []*noteConfig
	rows   []string
	seen   []string
	refuse string
	uses   []registry.BuildContext
	fail   error // the note tasklet's next answer
	out    map[string]any
	exit   string
	acts   map[string]func(c *core.StepContribution) error
}

func components() []registry.Component {
	list := []registry.Component{
		{
			Kind: registry.KindReader, Name: "count", Summary: "Counts.", Config: reflect.TypeFor[countConfig](),
			Doc: "It reads rows of a number and a label.", Example: "reader: {count: {to: 3, item: {n: int}}}",
			Types: func(cfg any, _ item.Type) (item.Type, error) {
				if it := cfg.(*countConfig).Item; it != nil {
					return it, nil
				}
				schema, err := row.NewSchema(row.Field{Name: "n", Kind: row.Int}, row.Field{Name: "label", Kind: row.String, Nullable: true})
				return item.RowOf("count", schema), err
			},
		},
		{Kind: registry.KindReader, Name: "apples", Summary: "Reads apples.", Types: answer(item.TypeOf[apple]("apple"))},
		{Kind: registry.KindReader, Name: "broken", Summary: "Does not say what it reads."},
		{Kind: registry.KindProcessor, Name: "keep", Summary: "Filters.", Config: reflect.TypeFor[keepConfig](), Types: keepTypes},
		{Kind: registry.KindProcessor, Name: "set", Summary: "Sets fields.", Config: reflect.TypeFor[setConfig](), Types: setTypes},
		{Kind: registry.KindProcessor, Name: "peel", Summary: "Takes pears.", Types: takes(item.TypeOf[pear]("pear"))},
		{Kind: registry.KindWriter, Name: "sink", Summary: "Remembers.", Config: reflect.TypeFor[sinkConfig]()},
		{Kind: registry.KindWriter, Name: "crate", Summary: "Takes pears.", Types: takes(item.TypeOf[pear]("pear"))},
		{Kind: registry.KindTasklet, Name: "note", Summary: "Notes its config.", Config: reflect.TypeFor[noteConfig]()},
		{Kind: registry.KindTasklet, Name: "idle", Summary: "Does nothing.", NoTransaction: true},
		{Kind: registry.KindListener, Name: "watch", Summary: "Notes skips.", Config: reflect.TypeFor[watchConfig]()},
		{Kind: registry.KindListener, Name: "gong", Summary: "Notes the begin and end of jobs.", Config: reflect.TypeFor[watchConfig]()},
		{Kind: registry.KindListener, Name: "bell", Summary: "Notes the begin and end of steps.", Config: reflect.TypeFor[watchConfig]()},
		{Kind: registry.KindListener, Name: "deaf", Summary: "Is no listener."},
		{
			Kind: registry.KindPartitioner, Name: "chapters", Summary: "Makes a part of each name.", Config: reflect.TypeFor[chaptersConfig](),
			Parts: func(cfg any) (map[string]reflect.Type, error) {
				if cfg.(*chaptersConfig).Width < 0 {
					return nil, &registry.ConfigError{Key: "width", Err: errors.New("it is negative")}
				}
				return map[string]reflect.Type{"last": reflect.TypeFor[int64](), "file": reflect.TypeFor[string]()}, nil
			},
		},
		{Kind: registry.KindDecider, Name: "coin", Summary: "Answers its side.", Config: reflect.TypeFor[coinConfig]()},
	}
	return list
}

func answer(t item.Type) func(any, item.Type) (item.Type, error) {
	return func(any, item.Type) (item.Type, error) { return t, nil }
}

func takes(t item.Type) func(any, item.Type) (item.Type, error) {
	return func(_ any, in item.Type) (item.Type, error) { return t, item.Assignable(in, t) }
}

func keepTypes(cfg any, in item.Type) (item.Type, error) {
	if _, err := expression.CompileItem(cfg.(*keepConfig).When, in); err != nil {
		return in, &registry.ConfigError{Key: "when", Err: err}
	}
	return in, nil
}

func setTypes(cfg any, in item.Type) (item.Type, error) {
	var errs []error
	for _, f := range cfg.(*setConfig).Fields {
		if _, err := expression.CompileItem(f.Expression, in); err != nil {
			errs = append(errs, &registry.ConfigError{Key: "fields." + f.Name, Err: err})
		}
	}
	return in, errors.Join(errs...)
}

func items() []registry.NamedItem {
	return []registry.NamedItem{{Name: "Apple", Type: item.TypeOf[apple]("apple")}}
}

func described(t testing.TB) *registry.Registry {
	t.Helper()
	matchers, err := exception.NewMatchers(errorclass.Stock()...)
	require.NoError(t, err)
	reg, err := registry.New(components(), items(), matchers)
	require.NoError(t, err)
	return reg
}

func (b *bench) registry(t testing.TB) *registry.Registry {
	t.Helper()
	made := b.made()
	return described(t).Map(func(c registry.Component) registry.Component {
		if c.New = made[c.Name]; c.New == nil {
			c.New = func(context.Context, any, registry.BuildContext) (any, error) {
				return nil, errors.New("not for running")
			}
		}
		return c
	})
}

func (b *bench) made() map[string]func(context.Context, any, registry.BuildContext) (any, error) {
	return map[string]func(context.Context, any, registry.BuildContext) (any, error){
		"count": func(_ context.Context, cfg any, use registry.BuildContext) (any, error) {
			b.use(use)
			return use.Out.FromRecords(&counter{cfg: cfg.(*countConfig), schema: use.Out.Schema()})
		},
		"sink": func(_ context.Context, _ any, use registry.BuildContext) (any, error) {
			b.use(use)
			return use.In.ToRecords(b)
		},
		"note": func(_ context.Context, cfg any, use registry.BuildContext) (any, error) {
			b.use(use)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.notes = append(b.notes, cfg.(*noteConfig))
			return core.TaskletFunc(func(_ context.Context, c *core.StepContribution) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				if act := b.acts[use.Step]; act != nil {
					return act(c)
				}
				c.Out, c.ExitCode = b.out, b.exit
				return b.fail
			}), nil
		},
		"watch": func(_ context.Context, cfg any, use registry.BuildContext) (any, error) {
			b.use(use)
			return &watch{bench: b, note: cfg.(*watchConfig).Note}, nil
		},
		"gong": func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return &gong{&watch{bench: b, note: cfg.(*watchConfig).Note}}, nil
		},
		"bell": func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return &bell{&watch{bench: b, note: cfg.(*watchConfig).Note}}, nil
		},
		"deaf": func(context.Context, any, registry.BuildContext) (any, error) { return 7, nil },
		"chapters": func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return cfg.(*chaptersConfig), nil
		},
		"coin": func(_ context.Context, cfg any, use registry.BuildContext) (any, error) {
			b.use(use)
			return core.DeciderFunc(func(context.Context, *core.View) (string, error) { return cfg.(*coinConfig).Side, nil }), nil
		},
		"keep": func(_ context.Context, cfg any, use registry.BuildContext) (any, error) {
			return testcomponent.Make[item.Processor](filter.Components(), registry.KindProcessor, testcomponent.Settings{"when": cfg.(*keepConfig).When}, use)
		},
	}
}

func (b *bench) use(u registry.BuildContext) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uses = append(b.uses, u)
}

func (b *bench) WriteRecords(_ context.Context, schema *row.Schema, records [][]row.Value) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	for _, values := range records {
		text := ""
		for i, v := range values {
			text += schema.Field(i).Name + "=" + v.String() + " "
		}
		if b.refuse != "" && text == b.refuse {
			return exception.Skippable("sink", errors.New("not this one"))
		}
		texts = append(texts, text)
	}
	b.rows = append(b.rows, texts...)
	return nil
}

type watch struct {
	*bench
	note string
}

func (w *watch) see(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, w.note+": "+fmt.Sprintf(format, args...))
}

func (w *watch) OnSkipRead(_ context.Context, err error) error {
	w.see("read %v", err)
	return nil
}

func (w *watch) OnSkipWrite(_ context.Context, value any, _ error) error {
	w.see("write %v", value.(item.Row).At(0))
	return nil
}

func (w *watch) BeforeRetry(_ context.Context, phase core.Phase, n int, _ error) error {
	w.see("%s %d", phase, n)
	return nil
}

func (c *chaptersConfig) Partition(context.Context, *core.View) ([]core.Partition, error) {
	var parts []core.Partition
	for i, name := range c.Names {
		kept := core.NewExecutionContext()
		if err := errors.Join(kept.Put("last", (i+1)*c.Width), kept.Put("file", name+".txt")); err != nil {
			return nil, err
		}
		parts = append(parts, core.Partition{Name: name, Index: i, Context: kept})
	}
	return parts, nil
}

type gong struct{ w *watch }

func (g *gong) BeforeJob(_ context.Context, job *core.JobExecution) error {
	g.w.see("before job %s", job.JobName)
	return nil
}

func (g *gong) AfterJob(_ context.Context, job *core.JobExecution) error {
	g.w.see("after job %s", job.Status)
	return nil
}

type bell struct{ w *watch }

func (b *bell) AfterStep(_ context.Context, step *core.StepExecution) error {
	b.w.see("after step %s", step.Name)
	return nil
}

type counter struct {
	cfg    *countConfig
	schema *row.Schema
	read   int
}

func (c *counter) Schema() *row.Schema { return c.schema }

func (c *counter) ReadRecord(_ context.Context, dst []row.Value) error {
	n := c.cfg.From + c.read
	if n > c.cfg.To {
		return io.EOF
	}
	c.read++
	for i := range dst {
		dst[i] = row.StringValue(c.cfg.Label)
		if c.schema.Field(i).Kind == row.Int {
			dst[i] = row.IntValue(int64(n))
		}
	}
	return nil
}
