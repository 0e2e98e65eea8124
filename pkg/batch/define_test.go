package batch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func nothing(context.Context, *batch.StepContribution) error { return nil }

func upper(_ context.Context, o Order) (Invoice, error) { return Invoice{o.ID, o.Amount}, nil }

func keep(context.Context, []Invoice) error { return nil }

func chunkOf(change func(*batch.Chunk)) batch.Chunk {
	c := batch.Chunk{
		Reader: batch.ReaderOf[Order](NewOrders), Processors: []batch.Component{batch.ProcessorOf[Order, Invoice](upper)},
		Writers: []batch.Component{batch.WriterOf[Invoice](keep)},
	}
	change(&c)
	return c
}

func TestEveryMistakeOfAJobInGoNamesItsStepAndOption(t *testing.T) {
	t.Parallel()
	none := batch.TaskletOf(nothing)
	for name, c := range map[string]struct {
		job  *batch.Job
		want []string
	}{
		"types": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) {
			c.Processors = []batch.Component{batch.ProcessorOf[Invoice, Invoice](func() invoices { return invoices{} })}
		})), []string{"job bill: step load: chunk.processor: processor bill.load.processor: "}},
		"writer's type": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) { c.Processors = nil })),
			[]string{"job bill: step load: chunk.writer: writer bill.load.writer: "}},
		"no component": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) {
			c.Writers = []batch.Component{batch.Use("tabel", "t")}
		})), []string{`job bill: step load: chunk.writer.tabel: there is no writer tabel (did you mean table?`}},
		"configuration": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) {
			c.Writers = []batch.Component{batch.Use("table", batch.Config{"nmae": "t"})}
		})), []string{`job bill: step load: chunk.writer.table.nmae: unknown key "nmae" in writer table (did you mean name?`}},
		"value": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) {
			c.Writers = []batch.Component{batch.Use("table", batch.Config{"name": make(chan int)})}
		})), []string{`job bill: step load: chunk.writer: table: name: a chan int cannot be part of a configuration`}},
		"size": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) { c.Size = -1 })), []string{"job bill: step load: chunk.size: "}},
		"retry": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) { c.Retry = &config.ItemRetryConfig{Limit: 1, Errors: []string{"transeint"}} })),
			[]string{"job bill: step load: chunk.retry.errors[1]: ", "did you mean transient?"}},
		"no reader":    {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) { c.Reader = batch.Component{} })), []string{`job bill: step load: chunk: chunk needs the key "reader"`}},
		"reader value": {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) { c.Reader = batch.ReaderOf[Order](NewOrders()) })), []string{"job bill: step load: chunk.reader: the reader is a value (*batch_test.Orders) with a position, which executions would share: pass a constructor, func() *batch_test.Orders"}},
		"other kind":   {batch.NewJob("bill").Step("load", chunkOf(func(c *batch.Chunk) { c.Reader = none })), []string{"job bill: step load: chunk.reader: this takes a reader, and here is a tasklet"}},
		"constructor":  {batch.NewJob("bill").Step("load", batch.TaskletOf(42)), []string{"job bill: step load: tasklet: the constructor is a int, not a function"}},
		"constructor's configuration": {batch.NewJob("bill").Step("load", batch.TaskletOf(func(PriceConfig) batch.TaskletFunc { return nothing })),
			[]string{"job bill: step load: tasklet: the constructor takes a batch_test.PriceConfig, which a job in Go does not provide"}},
		"no work":   {batch.NewJob("bill").Step("load", nil), []string{"job bill: step load: step load has no work"}},
		"name":      {batch.NewJob("bill").Step("load it", none), []string{`job bill: step load it: the name "load it" of a step is not an identifier`}},
		"job name":  {batch.NewJob("1 bill").Step("load", none), []string{`job 1 bill: "1 bill" is not a valid job name`}},
		"twice":     {batch.NewJob("bill").Step("load", none).Step("load", none), []string{"job bill: step load: there are two elements named load"}},
		"target":    {batch.NewJob("bill").Step("load", none, batch.With{Next: "lod"}), []string{"job bill: step load: next: "}},
		"on":        {batch.NewJob("bill").Step("load", none, batch.With{On: batch.On{"FAILED": batch.To("sweep")}}), []string{"job bill: step load: next.FAILED: "}},
		"zero":      {batch.NewJob("bill").Step("load", none, batch.With{On: batch.On{"FAILED": {}}}), []string{"job bill: step load: a target is zero: To, End, Fail and Stop make one"}},
		"next, on":  {batch.NewJob("bill").Step("load", none, batch.With{Next: "x", On: batch.On{"FAILED": batch.End("")}}), []string{"job bill: step load: with Next and On it is not said"}},
		"unreached": {batch.NewJob("bill").Step("a", none, batch.With{Next: "c"}).Step("b", none).Step("c", none), []string{"job bill: step b: b cannot be reached"}},
		"endless":   {batch.NewJob("bill").Step("a", none).Step("b", none, batch.With{Next: "a"}), []string{"job bill: step a: a is in a loop without an exit"}},
		"empty":     {batch.NewJob("bill"), []string{"job bill: the flow is empty"}},
		"when":      {batch.NewJob("bill").Step("a", none, batch.With{When: "params.n > 1"}), []string{"job bill: step a: when: "}},
		"no place":  {batch.NewJob("bill").Atomic("all", batch.NewFlow().Step("a", none, batch.With{Partition: &batch.Partitioned{By: batch.Use("count", 2)}})), []string{"job bill: step a: "}},
		"parameter": {batch.NewJob("bill").Parameter(batch.Parameter{Name: "n", Type: core.TypeInt, Default: "x"}).Step("a", none), []string{"job bill: parameters.n.default: "}},
		"parameters": {batch.NewJob("bill").Parameter(batch.Parameter{Name: "n", Type: core.TypeInt}).Parameter(batch.Parameter{Name: "n", Type: core.TypeInt}).Step("a", none),
			[]string{"job bill: parameters.n: there are two parameters of this name"}},
		"calendar":      {batch.NewJob("bill").Calendar(batch.Calendar{Name: "own", Base: "TARGTE"}).Step("a", none), []string{"job bill: calendars.own.base: calendar TARGTE is not declared above this one"}},
		"calendars":     {batch.NewJob("bill").Calendar(batch.Calendar{Name: "own"}).Calendar(batch.Calendar{Name: "own"}).Step("a", none), []string{"job bill: calendars.own: there are two calendars of this name"}},
		"tasklet retry": {batch.NewJob("bill").Step("a", none, batch.With{Retry: &config.ItemRetryConfig{Limit: 1, Errors: []string{"transeint"}}}), []string{"job bill: step a: retry.errors[1]: "}},
		"chunk retry":   {batch.NewJob("bill").Step("a", chunkOf(func(*batch.Chunk) {}), batch.With{Retry: &config.ItemRetryConfig{Limit: 1}}), []string{"job bill: step a: retry: "}},
		"choice":        {batch.NewJob("bill").Decide("d", batch.If("true", batch.To("a")), batch.If("false", batch.To("a"))).Step("a", none), []string{"job bill: decide d: choose[2].when: the last choice has no when"}},
		"child":         {batch.NewJob("bill").Child("c", batch.NewJob("part").Parameter(batch.Parameter{Name: "n", Type: core.TypeInt}).Step("a", none), map[string]string{"m": "1"}), []string{"job bill: job c: parameters.m: job part has no parameter m", "job bill: job c: job part needs the parameter n"}},
		"in child":      {batch.NewJob("bill").Child("c", batch.NewJob("part").Step("a", batch.Use("sqk", "x")), nil), []string{"job part: step a: tasklet.sqk: there is no tasklet sqk"}},
		"itself": {func() *batch.Job {
			j := batch.NewJob("bill")
			return j.Child("c", j, nil)
		}(), []string{"this job would run itself: bill -> bill"}},
		"flow in itself": {func() *batch.Job {
			f := batch.NewFlow().Step("k", none)
			f.Flow("in", f)
			return batch.NewJob("bill").Flow("s", f)
		}(), []string{"job bill: flow in: the flow is in itself"}},
		"flows in each other": {func() *batch.Job {
			f, g := batch.NewFlow().Step("k", none), batch.NewFlow().Step("l", none)
			f.Split("to", []*batch.Flow{g})
			g.Atomic("fro", f)
			return batch.NewJob("bill").Finally(f).Step("s", none)
		}(), []string{"job bill: atomic fro: the flow is in itself"}},
		"long name": {batch.NewJob("bill").Step(strings.Repeat("s", 101), none), []string{": the name of a step has 101 bytes (at most 100 are allowed)"}},
		"deep": {func() *batch.Job {
			f := batch.NewFlow().Step("k", none)
			for i := range 20 {
				f = batch.NewFlow().Flow(fmt.Sprint(strings.Repeat("f", 90), i), f)
			}
			return batch.NewJob("bill").Flow("s", f)
		}(), []string{" is too deep: the names of the elements around it have 20"}},
		"child again": {batch.NewJob("bill").Child("c", batch.NewJob("part").Step("a", none), nil, batch.With{AllowStartIfComplete: true}), []string{`job bill: job c: allow_start_if_complete: unknown key "allow_start_if_complete" in a child job`}},
		"timeout":     {batch.NewJob("bill").Step("a", none, batch.With{Timeout: -time.Second}), []string{"job bill: step a: timeout: "}},
		"listener":    {batch.NewJob("bill").Listeners(batch.ListenerOf(7)).Step("a", none), []string{"job bill: listeners: the constructor is a int, not a function"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := batch.CheckJobs([]*batch.Job{c.job})
			var problems jobfile.Problems
			require.ErrorAs(t, err, &problems)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), " in line ")
		})
	}
}

type csvConfig struct {
	Path string    `key:"path"`
	Item item.Type `key:"item"`
}

type mapConfig struct {
	Fields registry.Expressions `key:"fields" rest:"true"`
	Only   bool                 `key:"only"`
}

func TestTheTextOfAJobInGoIsAJobFile(t *testing.T) {
	t.Parallel()
	none, until := batch.TaskletOf(nothing), row.DateOf(time.Date(2027, 12, 31, 0, 0, 0, 0, time.UTC))
	job := batch.NewJob("everything").Describe("all there is: \"1\"").Database("default").Timezone("Europe/Berlin").Timeout(time.Hour).
		Parameter(batch.Parameter{Name: "day", Type: core.TypeDate, Default: "${today()}", Doc: "the day"}).
		Parameter(batch.Parameter{Name: "n", Type: core.TypeInt, Default: 3, Min: 1, Max: 9, NotIdentifying: true}).
		Parameter(batch.Parameter{Name: "kind", Type: core.TypeString, Enum: []string{"a", "b"}, Optional: true}).
		Calendar(batch.Calendar{Name: "own", Base: "TARGET", Holidays: []core.Date{row.DateOf(time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC))}, Until: &until}).
		Calendar(batch.Calendar{Name: "all", Weekend: []time.Weekday{}}).
		Calendar(batch.Calendar{Name: "gulf", Weekend: []time.Weekday{time.Friday, time.Saturday}}).
		Incrementer("day").Expect("job.name == 'everything'").NotRestartable().
		Step("load", batch.Chunk{
			Size:   7,
			Reader: batch.Use("csv", csvConfig{Path: "${params.kind ?? 'a'}.csv", Item: rowOf("id int, name string null")}),
			Processors: []batch.Component{
				batch.Use("filter", "item.id > 1"),
				batch.Use("map", mapConfig{Only: true, Fields: registry.Expressions{named("n", "item.id"), named("a", "item.name ?? '-'")}}),
			},
			Writers: []batch.Component{batch.Use("table", batch.Config{"name": "t", "mode": "upsert", "key": []string{"n"}})},
			Retry:   &config.ItemRetryConfig{Limit: 2, Backoff: config.Backoff{Initial: time.Millisecond}},
			Skip:    &config.ItemSkipConfig{Limit: 5, Except: []string{"unique"}},
			Isolate: "bisect", NoReprocess: true, Concurrency: 2,
		}, batch.With{When: "params.n > 1", Timeout: time.Hour, Expect: "read >= written", StartLimit: 3, AllowStartIfComplete: true}).
		Step("call", none, batch.With{When: "is_business_day(params.day, 'own')", Retry: &config.ItemRetryConfig{Limit: 2, Errors: []string{"transient"}, Backoff: config.Backoff{Initial: time.Millisecond}}}).
		Decide("which", batch.If("steps.load.skipped > 1", batch.Stop("both", "look")), batch.Else(batch.To("both"))).
		Split("both", []*batch.Flow{
			batch.NewFlow().Step("left", none, batch.With{On: batch.On{"ODD": batch.Fail("ODD"), "EVEN": batch.End("")}}),
			batch.NewFlow().Step("right", none),
		}).
		Flow("inner", batch.NewFlow().Step("in", none)).
		Atomic("group", batch.NewFlow().Step("one", none).Step("two", batch.Use("sql", "select 1\nfrom t"))).
		DecideBy("coin", batch.DeciderOf(func(context.Context, *batch.View) (string, error) { return "HEADS", nil }),
			batch.With{On: batch.On{"HEADS": batch.To("parts"), "TAILS": batch.End("TAILS")}}).
		Step("parts", none, batch.With{Partition: &batch.Partitioned{By: batch.Use("count", 3), Workers: 2, Remote: true, On: &core.Placement{Labels: map[string]string{"disk": "${part.name}"}}}, Listeners: []batch.Component{batch.ListenerOf(hears{})}}).
		Child("more", batch.NewJob("part").Parameter(batch.Parameter{Name: "day", Type: core.TypeDate}).Step("a", none), map[string]string{"day": "${params.day}"}, batch.With{Remote: "true", Placement: &core.Placement{Worker: "big"}}).
		Step("fan", batch.Tasks{Handler: "mail", Reader: batch.Use("query", batch.Config{"sql": "select 1 as n", "key": []string{"n"}, "item": map[string]string{"n": "int"}}),
			Budget: batch.Budget{MaxAttempts: 2, Deadline: time.Hour}}).
		Step("list", batch.Tasks{Handler: "mail", Items: []any{7, "7", "${params.day}", nil, true, []any{}, map[string]any{"to": "a: b", "n": -1e-7}}}).
		Step("last", none, batch.With{Transaction: &batch.Transaction{Propagation: "REQUIRED", Isolation: "serializable", Timeout: time.Second}, Promote: map[string]string{"a": "b"}}).
		Finally(batch.NewFlow().Step("tidy", none))
	require.NoError(t, batch.CheckJobs([]*batch.Job{job}))
	text, err := job.Text()
	require.NoError(t, err)
	r, files, err := assembly.Describe(batch.Jobs(job))
	require.NoError(t, err)
	file := files["everything"]
	require.Equal(t, text, file.Definition().Text)
	require.Empty(t, file.Definition().Path)
	again, err := jobfile.Parse("x.yaml", []byte(text), r)
	require.NoError(t, err, text)
	require.Equal(t, file.Steps(), again.Steps())
	require.Equal(t, []string{"load", "call", "left", "right", "in", "one", "two", "parts", "more", "fan", "list", "last", "tidy"}, file.Steps())
	require.Contains(t, text, "remote: true")
	require.Contains(t, text, "      on:\n        disk: \"${part.name}\"\n")
	require.Contains(t, text, "on: big\n")
	require.Contains(t, text, "  own:\n    base: TARGET\n    holidays:\n      - 2026-12-24\n    until: 2027-12-31\n  all:\n    weekend: []\n  gulf:\n    weekend:\n      - FRI\n      - SAT\n")
	require.Contains(t, text, "    retry:\n      limit: 2\n      errors:\n        - transient\n      backoff:\n        initial: 1ms\n")
	require.Contains(t, text, "everything.left.tasklet: core.TaskletFunc", "the Go type")
}

func TestTheTextOfAJobInGoHasTheFieldsOfItsRows(t *testing.T) {
	t.Parallel()
	scale := 2
	schema, err := row.NewSchema(row.Field{Name: "amount", Kind: row.DecimalKind, From: "Net", Scale: &scale, DecimalSeparator: ",", ThousandsSeparator: "."})
	require.NoError(t, err)
	job := batch.NewJob("fields").Step("load", batch.Chunk{
		Reader: batch.Use("csv", csvConfig{Path: "a.csv", Item: item.RowOf("", schema)}), Writers: []batch.Component{batch.Use("table", "t")},
	})
	require.NoError(t, batch.CheckJobs([]*batch.Job{job}))
	text, err := job.Text()
	require.NoError(t, err)
	for _, want := range []string{"type: decimal", "from: Net", "scale: 2", `decimal_separator: ","`, "thousands_separator: ."} {
		require.Contains(t, text, want)
	}
}

type hears struct{}

func (hears) BeforeStep(context.Context, *core.StepExecution) error { return nil }
