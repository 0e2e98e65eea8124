package batch_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// weekdays are the parts of a week's work.
type weekdays struct{}

func (weekdays) Partition(context.Context, *batch.View) ([]batch.Partition, error) {
	var parts []batch.Partition
	for i, day := range []string{"monday", "tuesday"} {
		values := &batch.ExecutionContext{}
		if err := values.Put("day", day); err != nil {
			return nil, err
		}
		parts = append(parts, batch.Partition{Name: day, Index: i, Context: values})
	}
	return parts, nil
}

// A partitioner lists the parts of a step's work, and the values of each for ${part.NAME}.
func ExamplePartitioner() {
	type Config struct {
		Text string `key:"text" main:"true" required:"true"`
	}
	say := func(config Config) batch.TaskletFunc {
		return func(context.Context, *batch.StepContribution) error {
			fmt.Println(config.Text)
			return nil
		}
	}
	runExample(`
job: week
flow:
- step: report
  partition: {by: weekdays, workers: 1}
  tasklet: {say: "the report of ${part.day}"}
`,
		batch.Partitioner("weekdays", func() weekdays { return weekdays{} }, batch.Part[string]("day")),
		batch.Tasklet("say", say, batch.NoTransaction()),
	)
	// Output:
	// the report of monday
	// the report of tuesday
	// report: COMPLETED, read 0, filtered 0, written 0
	// report:monday: COMPLETED, read 0, filtered 0, written 0
	// report:tuesday: COMPLETED, read 0, filtered 0, written 0
}

// A decider returns the exit code that `next` matches; it sees the steps run so far.
func ExampleDecider() {
	enough := func() batch.DeciderFunc {
		return func(_ context.Context, v *batch.View) (string, error) {
			if v.Steps["load"].Total().Write < 3 {
				return "TOO FEW", nil
			}
			return "ENOUGH", nil
		}
	}
	runExample(`
job: decided
flow:
- step: load
  chunk: {reader: orders, writer: {table: {name: orders, create: true}}}
- decide: enough
  decider: enough
  next: {"TOO *": fail, ENOUGH: report}
- step: report
  tasklet: {sql: "select 1"}
`,
		batch.Reader[Order]("orders", NewOrders),
		batch.Decider("enough", enough),
	)
	// Output:
	// load: COMPLETED, read 3, filtered 0, written 3
	// report: COMPLETED, read 0, filtered 0, written 0
}

// gentle gives a step that skipped items an exit code of its own.
type gentle struct{ skipped int }

func (g *gentle) OnSkipProcess(context.Context, any, error) error {
	g.skipped++
	return nil
}

func (g *gentle) AfterStep(_ context.Context, step *core.StepExecution) error {
	if step.Status == core.StatusCompleted && g.skipped > 0 {
		step.ExitCode = "COMPLETED WITH SKIPS"
	}
	fmt.Println(step.Name, step.ExitCode)
	return nil
}

// A listener is notified of events in a job, a step or a chunk, and may change how a step ends.
func ExampleListener() {
	runExample(`
job: listened
flow:
- step: load
  listeners: gentle
  chunk:
    reader: orders
    processor: {validate: {positive: item.amount > 0}}
    writer: {table: {name: orders, create: true}}
    skip: 5
  next: {"COMPLETED WITH *": end}
`,
		batch.Reader[Order]("orders", NewOrders),
		batch.Listener("gentle", func() *gentle { return &gentle{} }),
	)
	// Output:
	// load COMPLETED WITH SKIPS
	// load: COMPLETED, read 3, filtered 0, written 2
}

var errBusy = errors.New("the service is busy")

// calling is a processor that calls a service, which is busy at first.
type calling struct{ tries int }

func (c *calling) Process(_ context.Context, o Order) (Order, error) {
	if c.tries++; c.tries == 1 {
		return o, errBusy
	}
	return o, nil
}

// An error class of an application's own, for `errors` and `except` of job files.
func ExampleMatchers() {
	runExample(`
job: busy
flow:
- step: load
  chunk:
    reader: orders
    processor: calling
    writer: {table: {name: orders, create: true}}
    retry: {limit: 3, errors: [busy], backoff: {initial: 1ms}}
`,
		batch.Reader[Order]("orders", NewOrders),
		batch.Processor[Order, Order]("calling", func() *calling { return &calling{} }),
		batch.Matchers(batch.Matcher{Name: "busy", Match: func(err error) bool { return errors.Is(err, errBusy) }}),
	)
	// Output:
	// load: COMPLETED, read 3, filtered 0, written 3
}
