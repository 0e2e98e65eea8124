package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Order is the input of the examples, Invoice their output.
type Order struct {
	ID     int64
	Amount int64
}

type Invoice struct {
	ID, Total int64
}

// Rates is a dependency of a component: fx provides it.
type Rates struct{ Percent int64 }

func NewRates() *Rates { return &Rates{Percent: 19} }

// Price turns orders into invoices.
type Price struct {
	config PriceConfig
	rates  *Rates
}

// PriceConfig is its configuration in a job file.
type PriceConfig struct {
	Discount int64 `key:"discount" default:"0" doc:"percent off"`
}

func NewPrice(config PriceConfig, rates *Rates) *Price { return &Price{config, rates} }

func (p *Price) Process(_ context.Context, o Order) (Invoice, error) {
	if o.Amount == 0 {
		return Invoice{}, batch.ErrFilter
	}
	net := o.Amount * (100 - p.config.Discount) / 100
	return Invoice{ID: o.ID, Total: net * (100 + p.rates.Percent) / 100}, nil
}

// Orders is a reader that can be restarted: its position is the number of orders read.
type Orders struct {
	list []Order
	next int
}

func NewOrders() *Orders { return &Orders{list: []Order{{1, 100}, {2, 0}, {3, 300}}} }

func (r *Orders) Open(_ context.Context, at batch.Position) error {
	if at == nil {
		return nil
	}
	_, err := fmt.Sscan(string(at), &r.next)
	return err
}

func (r *Orders) Read(context.Context) (Order, error) {
	if r.next == len(r.list) {
		return Order{}, io.EOF
	}
	r.next++
	return r.list[r.next-1], nil
}

func (r *Orders) Position() (batch.Position, error) { return batch.Position(fmt.Sprint(r.next)), nil }

// Ledger is a writer of a table of the default database. It writes in the chunk's
// transaction, which ctx carries.
type Ledger struct{ db tx.Database }

func NewLedger(databases tx.Provider) (*Ledger, error) {
	db, err := databases.Database(tx.Default)
	return &Ledger{db}, err
}

func (l *Ledger) Write(ctx context.Context, invoices []Invoice) error {
	p := l.db.Dialect().Placeholder
	for _, i := range invoices {
		_, err := tx.ConnOf(ctx, l.db).ExecContext(ctx, "insert into ledger values ("+p(1)+", "+p(2)+")", i.ID, i.Total)
		if err != nil {
			return fmt.Errorf("ledger: invoice %d: %w", i.ID, err)
		}
	}
	return nil
}

// runExample runs a job on an SQLite database in a folder of its own, and prints how its
// steps ended.
func runExample(text string, opts ...fx.Option) {
	if err := tryExample(text, opts...); err != nil {
		fmt.Println(err)
	}
}

func tryExample(text string, opts ...fx.Option) (err error) {
	file, done := testexample.File("job.yaml", text)
	defer done()
	s, err := settings.Load(settings.Source{Dir: filepath.Dir(file)}) // an application calls batch.LoadSettings
	if err != nil {
		return err
	}
	ctx := context.Background()
	app, err := batch.New(ctx, s, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	execution, err := app.Run(ctx, batch.RunRequest{File: file})
	if err != nil {
		return err
	}
	steps, err := app.Repository.Steps(ctx, execution.ID)
	for _, step := range steps {
		fmt.Printf("%s: %s, read %d, filtered %d, written %d\n",
			step.Name, step.Status, step.Counters.Read, step.Counters.Filter, step.Counters.Write)
	}
	return err
}

// A job inside a Go program: settings, components, a job file, its parameters.
func ExampleNew() {
	file, done := testexample.File("greet.yaml", "job: greet\nparameters: {name: {type: string}}\nflow: [{step: greet, tasklet: greet}]\n")
	defer done()
	ctx := context.Background()
	s, err := settings.Load(settings.Source{Dir: filepath.Dir(file)}) // or batch.LoadSettings()
	if err != nil {
		fmt.Println(err)
		return
	}
	app, err := batch.New(ctx, s, batch.Tasklet("greet", func() batch.TaskletFunc {
		return func(_ context.Context, c *batch.StepContribution) error {
			name, err := c.Params.String("name")
			fmt.Println("Hello,", name)
			return err
		}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close(ctx)

	execution, err := app.Run(ctx, batch.RunRequest{File: file, Params: map[string]string{"name": "Ada"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(execution.Status)

	_, err = app.Run(ctx, batch.RunRequest{File: file, Params: map[string]string{"name": "Ada"}})
	fmt.Println(err)
	// Output:
	// Hello, Ada
	// COMPLETED
	// job greet is already complete with these parameters (execution 1)
}

// A custom reader, before a shipped writer.
func ExampleReader() {
	runExample(`
job: load
flow:
- step: load
  chunk: {reader: orders, writer: {table: {name: orders, create: true}}}
`, batch.Reader[Order]("orders", NewOrders))
	// Output: load: COMPLETED, read 3, filtered 0, written 3
}

// A processor with a configuration from the job file and a dependency from fx.
func ExampleProcessor() {
	runExample(`
job: price
flow:
- step: price
  chunk:
    reader: orders
    processor: {price: {discount: 10}}
    writer: {table: {name: invoices, create: true}}
`,
		batch.Reader[Order]("orders", NewOrders),
		batch.Processor[Order, Invoice]("price", NewPrice, batch.Summary("orders to invoices")),
		fx.Provide(NewRates),
	)
	// Output: price: COMPLETED, read 3, filtered 1, written 2
}

// A writer that takes part in the chunk's transaction.
func ExampleWriter() {
	runExample(`
job: bill
flow:
- step: table
  tasklet: {sql: "create table ledger(id bigint primary key, total bigint not null)"}
- step: bill
  chunk: {size: 2, reader: orders, processor: price, writer: ledger}
`,
		batch.Reader[Order]("orders", NewOrders),
		batch.Processor[Order, Invoice]("price", NewPrice),
		batch.Writer[Invoice]("ledger", NewLedger),
		fx.Provide(NewRates),
	)
	// Output:
	// table: COMPLETED, read 0, filtered 0, written 0
	// bill: COMPLETED, read 3, filtered 1, written 2
}

// A tasklet passes results on to later steps.
func ExampleTasklet() {
	count := func() batch.TaskletFunc {
		return func(_ context.Context, c *batch.StepContribution) error {
			c.Out = map[string]any{"rows": 3}
			return nil
		}
	}
	type Config struct {
		Text string `key:"text" main:"true" required:"true" doc:"what to say"`
	}
	say := func(config Config) batch.TaskletFunc {
		return func(context.Context, *batch.StepContribution) error {
			fmt.Println(config.Text)
			return nil
		}
	}
	runExample(`
job: tell
flow:
- {step: count, tasklet: count}
- {step: tell, tasklet: {say: "there are ${steps.count.out.rows} rows"}}
`, batch.Tasklet("count", count), batch.Tasklet("say", say, batch.NoTransaction()))
	// Output:
	// there are 3 rows
	// count: COMPLETED, read 0, filtered 0, written 0
	// tell: COMPLETED, read 0, filtered 0, written 0
}

// A Go type as the item of the shipped readers. Without Item, job files still
// have rows: `item: {id: int, amount: int}`.
func ExampleItem() {
	runExample(`
job: copy
flow:
- step: store
  chunk: {reader: orders, writer: {table: {name: orders, create: true}}}
- step: price
  chunk:
    reader: {query: {sql: "select id, amount from orders", key: [id], item: order}}
    processor: price
    writer: {table: {name: invoices, create: true}}
`,
		batch.Item[Order]("order"),
		batch.Reader[Order]("orders", NewOrders),
		batch.Processor[Order, Invoice]("price", NewPrice),
		fx.Provide(NewRates),
	)
	// Output:
	// store: COMPLETED, read 3, filtered 0, written 3
	// price: COMPLETED, read 3, filtered 1, written 2
}

// Everything that happens can be observed: for logs, metrics, alarms.
func ExampleObserve() {
	runExample(`
job: load
flow:
- step: load
  chunk: {size: 2, reader: orders, writer: {table: {name: orders, create: true}}}
`,
		batch.Reader[Order]("orders", NewOrders),
		batch.Observe(core.ObserverFunc(func(_ context.Context, e core.Event) {
			switch e := e.(type) {
			case core.ChunkCommitted:
				fmt.Println("committed:", e.Counters.Write, "rows so far")
			case core.JobEnded:
				fmt.Println("ended:", e.Execution.Status)
			default:
			}
		})),
	)
	// Output:
	// committed: 2 rows so far
	// committed: 3 rows so far
	// ended: COMPLETED
	// load: COMPLETED, read 3, filtered 0, written 3
}

// The engine inside an fx application: its constructors may request the launcher, the repository and
// the databases.
func ExampleModule() {
	dir, done := testexample.Dir()
	defer done()
	s, err := settings.Load(settings.Source{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	app := fx.New(
		fx.NopLogger,
		batch.Module(s),
		batch.Reader[Order]("orders", NewOrders),
		fx.Invoke(func(r *registry.Registry, databases tx.Provider, _ *batch.App) {
			_, found := r.Component(registry.KindReader, "orders")
			fmt.Println(found, strings.Join(databases.Names(), ", "))
		}),
	)
	if err := errors.Join(app.Start(context.Background()), app.Stop(context.Background())); err != nil {
		fmt.Println(err)
	}
	// Output: true default
}

// Settings come from the environment and from surfin.yaml, as for the command.
func ExampleLoadSettings() {
	before := os.Getenv("DATABASE_URL")
	defer func() { testexample.Check(os.Setenv("DATABASE_URL", before)) }() // empty is not set
	testexample.Check(os.Setenv("DATABASE_URL", "postgres://me@db.example.org/orders"))
	s, err := batch.LoadSettings()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Databases[tx.Default])
	fmt.Println(s.Lease)
	// Output:
	// postgres me@db.example.org/orders
	// 30s
}

// An error in a registration is reported at start, by the component's name.
func ExampleNew_missingDependency() {
	runExample("", batch.Processor[Order, Invoice]("price", NewPrice))
	// Output: processor "price" needs a *batch_test.Rates: add an fx.Provide of a function that returns one
}
