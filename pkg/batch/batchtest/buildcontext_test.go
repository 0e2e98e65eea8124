package batchtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type placed struct {
	in    batch.BuildContext
	db    tx.Database
	names int64
	heard []string
}

type placedConfig struct {
	Prefix string `key:"prefix" main:"true"`
}

type greeting struct{ text string }

func newPlaced(c placedConfig, g *greeting, in batch.BuildContext) (*placed, error) {
	db, err := in.FindDatabase(in.StepDatabase)
	return &placed{in: in, db: db, heard: []string{c.Prefix + g.text}}, err
}

func (p *placed) BeforeStep(_ context.Context, step *core.StepExecution) error {
	p.heard = append(p.heard, "before "+step.Name)
	return nil
}

func (p *placed) Process(ctx context.Context, item person) (person, error) {
	p.names++
	var greeted string
	if err := tx.ConnOf(ctx, p.db).QueryRowContext(ctx, "select word from greetings").Scan(&greeted); err != nil {
		return item, err
	}
	item.Name = greeted + " " + item.Name
	return item, p.in.StepContext().Put("names", p.names)
}

func (p *placed) AfterStep(_ context.Context, step *core.StepExecution) error {
	p.heard = append(p.heard, fmt.Sprintf("after %d", step.Counters.Write))
	return step.Context.Put("heard", fmt.Sprint(p.in.Job, " ", p.in.Step, " ", p.in.Execution, " ", p.heard))
}

type told struct{ heard string }

func (t *told) BeforeStep(context.Context, *core.StepExecution) error {
	t.heard += "before, "
	return nil
}
func (t *told) Execute(context.Context, *core.StepContribution) error {
	t.heard += "work, "
	return nil
}
func (t *told) AfterStep(_ context.Context, step *core.StepExecution) error {
	step.ExitCode = t.heard + "after"
	return nil
}

// Rule C16b.
func TestAComponentReachesItsStep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url), batchtest.With(
			batch.Item[person]("person"), fx.Supply(&greeting{"hello"}),
			batch.Processor[person, person]("placed", newPlaced), batch.Tasklet("told", func() *told { return &told{} }),
		))
		e.Exec("create table people (id bigint, name text)")
		e.Exec("create table greetings (word text)")
		e.Exec("insert into greetings values ('dear')")
		run := e.Job(e.File("load.yaml", `
job: greet
parameters:
  input: {type: path}
flow:
- step: load
  chunk:
    process_in_transaction: true
    reader: {csv: {path: "${params.input}", item: person}}
    processor: {placed: "say "}
    writer: {table: people}
- step: tell
  tasklet: told
`), "input="+e.File("in.csv", "id,name\n1,anna\n2,bob\n")).Completed()
		e.HasRows("select name from people order by id", "dear anna", "dear bob")
		step := run.Step("load")
		names, _ := step.Context.Get("names")
		heard, _ := step.Context.Get("heard")
		require.Equal(t, int64(2), names)
		require.Equal(t, fmt.Sprintf("greet load %d [say hello before load after 2]", run.Execution.ID), heard)
		require.Equal(t, "before, work, after", run.Step("tell").ExitCode)
	})
}
