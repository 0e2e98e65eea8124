//test:plain

package batchtest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

var errFault = errors.New("injected")

func chunkOf(name string, size int) chunk.Config { return chunk.Config{Name: name, Size: size} }

func idIs(id int64) func(any) bool {
	return func(item any) bool { p, ok := item.(person); return ok && p.ID == id }
}

func is(n int) func(any) bool { return func(item any) bool { return item == n } }

type shout struct{ calls atomic.Int64 }

func (s *shout) Process(_ context.Context, p person) (person, error) {
	s.calls.Add(1)
	if p.Name == "" {
		return p, item.ErrFilter
	}
	p.Name += "!"
	return p, nil
}

const peopleJob = `
job: people
parameters:
  dir: {type: path}
  min: {type: int, default: 1}
flow:
- step: create
  tasklet: {sql: "create table people (id bigint, name text)"}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.dir}/in.csv", item: person}}
    processor:
    - filter: item.id >= params.min
    - shout
    writer: {table: people}
`

func personItems() []fx.Option { return []fx.Option{batch.Item[person]("person")} }

func application() batchtest.Option {
	return batchtest.With(batch.Item[person]("person"), batch.Processor[person, person]("shout", func() *shout { return &shout{} }))
}

func prepare(e *batchtest.Env) (file, dir string) {
	e.File("in.csv", "id,name\n1,anna\n2,bob\n3,\n4,dora\n")
	return e.File("people.yaml", peopleJob), "dir=" + e.Dir()
}

func TestAJobFileRunsOnAnyDatabase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url), application())
		file, dir := prepare(e)
		r := e.Job(file, dir, "min=2").Completed()
		r.Counters("load", core.Counters{Read: 4, Filter: 2, Write: 2, Commit: 2})
		e.HasRows("select id, name from people order by id", "2|bob!", "4|dora!")
		require.Empty(t, r.Skipped("load"))
		require.Equal(t, core.StatusCompleted, r.Step("create").Status)
		_, err := e.Launch(file, dir, "min=2")
		var complete *ports.InstanceCompleteError
		require.ErrorAs(t, err, &complete)
	})
}

func TestOneStepOfAJobFileRunsByItself(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t, application())
	file, dir := prepare(e)
	e.Exec("create table people (id bigint, name text)")
	e.Exec("insert into people values (?1, null)", 0)
	r := e.Step(file, "load", dir).Completed()
	require.Len(t, r.Steps, 1)
	e.HasRows("select id, name from people order by id", "0|NULL", "1|anna!", "2|bob!", "4|dora!")
}

func TestComponentsInGoRunAsAStep(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	sink, p := &batchtest.Sink[person]{}, &shout{}
	r := batchtest.Step(e, chunk.Config{Size: 2}, batchtest.Components[person, person]{
		Reader: batchtest.Slice(person{1, "anna"}, person{2, ""}, person{3, "cleo"}), Processor: p, Writer: sink,
	})
	r.Completed().Counters("step", core.Counters{Read: 3, Filter: 1, Write: 2, Commit: 2})
	batchtest.Has(t, sink, person{1, "anna!"}, person{3, "cleo!"})
	require.EqualValues(t, 3, p.calls.Load())
}

func TestASecondRunOfAFailedStepGoesOnAtItsLastCommit(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]batchtest.Fault{
		"read":         {Phase: core.PhaseRead, Calls: []int{4}, Err: errFault},
		"process":      {Phase: core.PhaseProcess, Match: is(4), Times: 1, Err: errFault},
		"write":        {Phase: core.PhaseWrite, Match: is(40), Times: 1, Err: errFault},
		"after write":  {Phase: core.PhaseWrite, Match: is(40), Times: 1, Err: errFault, After: true},
		"second write": {Phase: core.PhaseWrite, Calls: []int{2}, Err: errFault},
		"panic":        {Phase: core.PhaseWrite, Calls: []int{2}, Panic: "injected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := batchtest.New(t, batchtest.WithFaults(fault))
			sink := &batchtest.Sink[int]{}
			run := func() *batchtest.Run {
				return batchtest.Step(e, chunkOf("load", 2), batchtest.Components[int, int]{
					Reader: batchtest.Slice(1, 2, 3, 4, 5), Processor: tenfold{}, Writer: sink,
				})
			}
			r := run().Failed("injected")
			require.EqualValues(t, 2, r.Step("load").Counters.Write)
			r = run().Completed()
			require.EqualValues(t, 3, r.Step("load").Counters.Read)
			batchtest.Has(t, sink, 10, 20, 30, 40, 50)
		})
	}
}

type tenfold struct{}

func (tenfold) Process(_ context.Context, n int) (int, error) { return 10 * n, nil }

func TestFaultsStrikeInJobFilesByStepAndComponent(t *testing.T) {
	t.Parallel()
	fired := 0
	e := batchtest.New(t, application(), batchtest.WithFaults(
		batchtest.Fault{Step: "load", Phase: core.PhaseProcess, Component: "shout", Match: idIs(4), Times: 1, Err: errFault},
		batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Do: func() { fired++ }},
	))
	file, dir := prepare(e)
	e.Job(file, dir).Failed("injected")
	e.HasRows("select id from people order by id", "1", "2")
	e.Job(file, dir).Completed()
	e.HasRows("select id from people order by id", "1", "2", "4")
	require.Equal(t, 2, fired)
}

func TestAFaultOfAProcessorThatIsCalledAheadStrikes(t *testing.T) {
	t.Parallel()
	pure := strings.Replace(peopleJob, "    - shout\n", "", 1)
	for _, ahead := range []string{"false", "auto"} {
		for name, fault := range map[string]batchtest.Fault{"error": {Err: errFault}, "panic": {Panic: "injected"}} {
			t.Run(name+", read_ahead "+ahead, func(t *testing.T) {
				t.Parallel()
				fault.Step, fault.Phase, fault.Match, fault.Times = "load", core.PhaseProcess, idIs(4), 1
				e := batchtest.New(t, application(), batchtest.WithFaults(fault))
				_, dir := prepare(e)
				file := e.File("ahead.yaml", strings.Replace(pure, "    size: 2\n", "    size: 2\n    read_ahead: "+ahead+"\n", 1))
				e.Job(file, dir).Failed("injected")
			})
		}
	}
}

func TestAReadFaultOnAnItemConsumesIt(t *testing.T) {
	t.Parallel()
	faults := batchtest.NewFaults(batchtest.Fault{Phase: core.PhaseRead, Match: is(2), Err: errFault})
	reader := faults.Parts("", chunk.Parts{Reader: item.EraseReader(batchtest.Slice(1, 2, 3))}).Reader
	items := reader.NewItems(3)
	err := reader.Fill(t.Context(), items, 3)
	require.ErrorIs(t, err, errFault)
	var consumed *item.ConsumedError
	require.ErrorAs(t, err, &consumed)
	require.EqualValues(t, 2, consumed.Meta.Line)
	require.Equal(t, 1, items.Len())
	require.Error(t, reader.Fill(t.Context(), items, 3), "the data ends")
	require.Equal(t, 2, items.Len())
	require.Equal(t, 3, items.At(1))
	require.Equal(t, 1, faults.Fired(0))
}

func TestAReadFaultOnACallConsumesNothing(t *testing.T) {
	t.Parallel()
	faults := batchtest.NewFaults(batchtest.Fault{Phase: core.PhaseRead, Calls: []int{2}, Err: errFault})
	reader := faults.Parts("", chunk.Parts{Reader: item.EraseReader(batchtest.Slice(1, 2, 3))}).Reader
	items := reader.NewItems(3)
	require.ErrorIs(t, reader.Fill(t.Context(), items, 3), errFault)
	require.Equal(t, 1, items.Len())
	require.NoError(t, reader.Fill(t.Context(), items, 3))
	require.Equal(t, 2, items.At(1))
}

func TestAnImpossibleFaultIsRefused(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]batchtest.Fault{
		"none of read, process, write": {Phase: "commit", Err: errFault},
		"it has no failure":            {Phase: core.PhaseRead},
		"numbered from 1":              {Phase: core.PhaseRead, Err: errFault, Calls: []int{0}},
	} {
		_, err := batch.New(t.Context(), batch.Settings{}, batchtest.Inject(fault))
		require.ErrorContains(t, err, text)
	}
}
