package redrive_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type order struct {
	ID   int64
	Card string `json:"card,omitempty" redact:"true"`
	Note string `json:"note,omitempty"`
}

type secretless struct{ ID int64 }

type deed string

const (
	written     deed = "written"
	filtered    deed = "filtered"
	skipRead    deed = "skipped by the reader"
	skipProcess deed = "skipped by the processor"
	skipWrite   deed = "skipped by the writer"
	failProcess deed = "fails in the processor"
	failWrite   deed = "fails in the writer"
)

var errBad = errors.New("bad")

type bench struct {
	*testengine.Engine
	config chunk.Config
	deeds  map[int64]deed
	// visit is called by the processor, outside any transaction; may be nil.
	visit func(id int64)
}

func newBench(t testing.TB, url string) *bench {
	t.Helper()
	b := &bench{Engine: testengine.New(t, url), deeds: map[int64]deed{}}
	b.Exec("create table out (id bigint)")
	return b
}

func (b *bench) Process(_ context.Context, o secretless) (secretless, error) {
	if b.visit != nil {
		b.visit(o.ID)
	}
	switch b.deeds[o.ID] {
	case filtered:
		return o, item.ErrFilter
	case skipProcess:
		return o, exception.Skippable("process", errBad)
	case failProcess:
		return o, errBad
	default: // the deed happens elsewhere
		return o, nil
	}
}

func (b *bench) Write(ctx context.Context, items []secretless) error {
	current, ok := tx.From(ctx, b.Database.Name())
	if !ok {
		return errors.New("there is no transaction")
	}
	for _, o := range items {
		switch b.deeds[o.ID] {
		case skipWrite:
			return exception.Skippable("write", errBad)
		case failWrite:
			return errBad
		default: // it is written
		}
		if _, err := current.Conn().ExecContext(ctx, "insert into out values ("+b.Database.Dialect().Placeholder(1)+")", o.ID); err != nil {
			return err
		}
	}
	return nil
}

// source reads the items 1 to n.
type source struct {
	b    *bench
	n, i int64
}

func (s *source) Read(context.Context) (secretless, error) {
	if s.i == s.n {
		return secretless{}, io.EOF
	}
	s.i++
	if s.b.deeds[s.i] == skipRead {
		return secretless{}, item.Consumed(item.Meta{Path: "in", Line: s.i}, exception.Skippable("read", errBad))
	}
	return secretless{ID: s.i}, nil
}

func (s *source) Meta() item.Meta { return item.Meta{Path: "in", Line: s.i} }

func (b *bench) step(reader func(ctx context.Context, run *model.StepRun) (item.Reader, error)) (model.Step, error) {
	c := b.config
	c.Name, c.Database, c.Skip = "load", b.Database, chunk.LimitSkip{Limit: 1000}
	c.Assemble = func(ctx context.Context, run *model.StepRun) (chunk.Parts, error) {
		r, err := reader(ctx, run)
		return chunk.Parts{
			Reader: r, Processors: []item.Processor{item.EraseProcessor[secretless, secretless](b)},
			Writers: []item.Writer{item.EraseWriter[secretless](b)},
		}, err
	}
	return chunk.New(c)
}

func (b *bench) original(t require.TestingT, n int64) *core.JobExecution {
	step, err := b.step(func(context.Context, *model.StepRun) (item.Reader, error) {
		return item.EraseReader[secretless](&source{b: b, n: n}), nil
	})
	require.NoError(t, err)
	exec := b.Run(testengine.Job("load", &model.StepElement{Step: step}))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	return exec
}

func (b *bench) redrive(t require.TestingT, plan *redrive.Plan, n int64) *core.JobExecution {
	step, err := redrive.NewStep(plan, nil, func(s *redrive.Step) (model.Step, error) {
		return b.step(func(ctx context.Context, run *model.StepRun) (item.Reader, error) {
			return s.Reader(ctx, run, item.TypeOf[secretless](""), item.EraseReader[secretless](&source{b: b}))
		})
	})
	require.NoError(t, err)
	j := testengine.Job("load", &model.StepElement{Step: step})
	j.RedriveOf = plan.Execution
	params, err := core.NewParameters(core.Parameter{Name: "run.redrive", Type: core.TypeInt, Value: n, Identifying: true})
	require.NoError(t, err)
	exec, err := b.Launcher.Run(context.Background(), j, params, nil)
	require.NoError(t, err)
	return exec
}

func (b *bench) plan(t require.TestingT, request redrive.Request) *redrive.Plan {
	plan, err := redrive.New(context.Background(), b.Repository, request)
	require.NoError(t, err)
	return plan
}

func (b *bench) skipped(t require.TestingT, exec *core.JobExecution) []core.SkippedItem {
	items, err := b.Repository.SkippedItems(context.Background(), ports.SkipFilter{Execution: exec.ID, Limit: 1000})
	require.NoError(t, err)
	return items
}

func (b *bench) rows() map[int64]int {
	count := map[int64]int{}
	for _, id := range b.Ints("select id from out") {
		count[id]++
	}
	return count
}

func idOf(t require.TestingT, s core.SkippedItem) int64 {
	var item secretless
	require.NoError(t, json.Unmarshal(s.Item, &item))
	return item.ID
}

func TestEveryItemIsRedrivenOnceWhateverFails(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		cases, share := 60, 3
		if n, err := strconv.Atoi(os.Getenv("SURFIN_SOAK")); err == nil {
			cases, share = n, 10
		}
		if !strings.HasPrefix(url, "sqlite") {
			cases /= share
		}
		checks := flag.Lookup("rapid.checks").Value
		given := checks.String()
		require.NoError(t, checks.Set(strconv.Itoa(cases)))
		t.Cleanup(func() { require.NoError(t, checks.Set(given)) })
		b := newBench(t, url)
		rapid.Check(t, func(t *rapid.T) { rounds(t, b) })
	})
}

func rounds(t *rapid.T, b *bench) {
	for _, table := range []string{"out", "surfin_skipped_item", "surfin_step_execution", "surfin_job_execution_param", "surfin_job_execution", "surfin_job_instance"} {
		b.Exec("delete from " + table)
	}
	n := rapid.Int64Range(1, 12).Draw(t, "items")
	b.config = chunk.Config{
		Size:    rapid.IntRange(1, 6).Draw(t, "size"),
		Isolate: rapid.SampledFrom([]chunk.Isolation{chunk.IsolateEach, chunk.IsolateBisect}).Draw(t, "isolate"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 1:
		b.config.KeepOutputs = true
	case 2:
		b.config.ProcessInTransaction = true
	case 3:
		b.config.Concurrency = 3
	}
	for id := int64(1); id <= n; id++ {
		b.deeds[id] = rapid.SampledFrom([]deed{written, filtered, skipProcess, skipWrite}).Draw(t, fmt.Sprint(id))
	}
	original := b.original(t, n)
	done := map[int64]deed{} // IDs that have a verdict, and which
	instance, status := int64(1), core.StatusFailed
	for round := 1; ; round++ {
		left := 0
		for _, s := range b.skipped(t, original) {
			if id := idOf(t, s); s.RedrivenBy == 0 {
				left++
				good := []deed{written, filtered, skipProcess, skipWrite, failProcess, failWrite}
				if round > 4 {
					good = good[:2]
				}
				b.deeds[id] = rapid.SampledFrom(good).Draw(t, fmt.Sprintf("%d in round %d", id, round))
			}
		}
		if left == 0 {
			return
		}
		if status == core.StatusCompleted || rapid.Bool().Draw(t, "another instance") {
			instance++
		}
		before := b.rows()
		exec := b.redrive(t, b.plan(t, redrive.Request{Execution: original.ID}), instance)
		status = exec.Status
		judge(t, b, original, exec, done, before)
	}
}

func judge(t *rapid.T, b *bench, original, exec *core.JobExecution, done map[int64]deed, before map[int64]int) {
	rows := b.rows()
	again := map[int64]bool{}
	for _, s := range b.skipped(t, exec) {
		again[idOf(t, s)] = true
	}
	for _, s := range b.skipped(t, original) {
		id := idOf(t, s)
		if was, ok := done[id]; ok {
			require.NotEqual(t, exec.ID, s.RedrivenBy)
			require.Equal(t, was == written, rows[id] == 1, "item %d", id)
			continue
		}
		require.Zero(t, before[id])
		if s.RedrivenBy == 0 {
			require.Zero(t, rows[id], "item %d is written and not marked", id)
			require.True(t, exec.Status != core.StatusCompleted || again[id], "item %d has no verdict in a redrive that completed", id)
			continue
		}
		require.Equal(t, exec.ID, s.RedrivenBy)
		require.False(t, again[id], "item %d is marked and skipped", id)
		require.Contains(t, []deed{written, filtered}, b.deeds[id])
		require.Equal(t, b.deeds[id] == written, rows[id] == 1, "item %d", id)
		done[id] = b.deeds[id]
	}
}

func TestOfTwoRedrivesOfTheSameItemsOneRollsBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBench(t, url)
		b.config.Size = 10
		b.deeds = map[int64]deed{2: skipWrite, 3: skipProcess}
		original := b.original(t, 3)
		b.deeds = map[int64]deed{}
		first, second := b.plan(t, redrive.Request{Execution: original.ID}), b.plan(t, redrive.Request{Execution: original.ID})
		b.visit = func(int64) { // while the first one processes its items
			b.visit = nil
			require.Equal(t, core.StatusCompleted, b.redrive(t, second, 2).Status)
		}
		exec := b.redrive(t, first, 1)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, ports.ErrRedriven.Error())
		require.Equal(t, map[int64]int{1: 1, 2: 1, 3: 1}, b.rows())
		_, err := redrive.New(t.Context(), b.Repository, redrive.Request{Execution: original.ID})
		require.ErrorIs(t, err, redrive.ErrNothing)
	})
}

func TestEditedItemsTakeThePlaceOfStoredOnes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBench(t, url)
		b.deeds = map[int64]deed{1: skipWrite, 2: skipRead, 3: skipProcess}
		original := b.original(t, 4)
		b.deeds = map[int64]deed{}
		ids := map[core.Phase]int64{}
		for _, s := range b.skipped(t, original) {
			ids[s.Phase] = s.ID
		}
		plan := b.plan(t, redrive.Request{Execution: original.ID})
		require.Equal(t, 2, plan.Items)
		require.Len(t, plan.Refused, 1)
		require.EqualError(t, plan.Refused[0], fmt.Sprintf("skipped item %d: it could not be read, so there is no item", ids[core.PhaseRead]))

		edited := map[int64]redrive.Edit{ids[core.PhaseRead]: {Item: json.RawMessage(`{"ID":20}`)}, ids[core.PhaseWrite]: {Item: json.RawMessage(`{"ID":10}`)}}
		exec := b.redrive(t, b.plan(t, redrive.Request{Execution: original.ID, Step: "load", Edited: edited}), 1)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, map[int64]int{4: 1, 10: 1, 20: 1}, b.rows())
		require.Equal(t, core.Counters{Read: 2, Write: 2, Commit: 1}, b.Step(exec, "load").Counters)

		exec = b.redrive(t, b.plan(t, redrive.Request{Execution: original.ID}), 2)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, map[int64]int{3: 1, 4: 1, 10: 1, 20: 1}, b.rows())
		edited = map[int64]redrive.Edit{ids[core.PhaseRead]: edited[ids[core.PhaseRead]], 999: {}}
		_, err := redrive.New(t.Context(), b.Repository, redrive.Request{Execution: original.ID, Edited: edited})
		require.ErrorContains(t, err, fmt.Sprintf("skipped item %d: execution 2 has redriven it", ids[core.PhaseRead]))
		require.ErrorContains(t, err, "skipped item 999: not found")
	})
}

func (b *bench) stored(t *testing.T, items ...any) (*core.JobExecution, []int64) {
	t.Helper()
	var list []core.SkippedItem
	for _, value := range items {
		s := core.SkippedItem{Phase: core.PhaseProcess}
		s.Item, s.Truncated, s.SHA256 = item.EncodePayload(value)
		list = append(list, s)
	}
	step, err := chunkless(func(ctx context.Context, run *model.StepRun) error {
		return tx.NewManager(b.Database).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
			return run.Services.Checkpoints.Checkpoint(ctx, run.Ref, ports.Checkpoint{Skipped: list})
		})
	}), error(nil)
	require.NoError(t, err)
	exec := b.Run(testengine.Job("load", &model.StepElement{Step: step}))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	var ids []int64
	for _, s := range b.skipped(t, exec) {
		ids = append(ids, s.ID)
	}
	return exec, ids
}

type chunkless func(ctx context.Context, run *model.StepRun) error

func (chunkless) Name() string                                            { return "load" }
func (chunkless) Kind() string                                            { return "test" }
func (f chunkless) Execute(ctx context.Context, run *model.StepRun) error { return f(ctx, run) }

func TestAnItemThatWasNotStoredWholeIsRefusedUnlessItIsGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t, testdb.SQLite(t))
	exec, ids := b.stored(t, order{ID: 1, Card: "secret"}, order{ID: 2, Note: strings.Repeat("x", item.MaxPayloadBytes)}, secretless{ID: 3})
	plan := b.plan(t, redrive.Request{Execution: exec.ID})
	require.Equal(t, 1, plan.Items)
	require.Len(t, plan.Refused, 2)
	require.ErrorContains(t, plan.Refused[0], "some of its fields are hidden")
	require.ErrorContains(t, plan.Refused[1], "longer than 65536 bytes")

	masked := json.RawMessage(` {"ID": 1, "card": "***"} `)
	_, err := redrive.New(t.Context(), b.Repository, redrive.Request{Execution: exec.ID, Edited: map[int64]redrive.Edit{ids[0]: {Item: masked}, ids[1]: {}}})
	require.ErrorContains(t, err, fmt.Sprintf("skipped item %d: the file has the stored item", ids[0]))
	require.ErrorContains(t, err, fmt.Sprintf("skipped item %d: it is longer than 65536 bytes", ids[1]))
	given := json.RawMessage(`{"ID":1,"card":"secret"}`)
	plan = b.plan(t, redrive.Request{Execution: exec.ID, Edited: map[int64]redrive.Edit{ids[0]: {Item: given}}})
	require.Equal(t, 1, plan.Items)
}

func TestColumnsThatOnlyTheSourceKnewAreTakenFromTheStoredItems(t *testing.T) {
	t.Parallel()
	b := newBench(t, testdb.SQLite(t))
	open, err := row.Open(row.Field{Name: "id", Kind: row.Int, From: "Id"})
	require.NoError(t, err)
	itemType := item.RowOf("", open)
	exec, ids := b.stored(t, secretless{ID: 1}, secretless{ID: 2}, secretless{ID: 3})
	read := func(texts ...string) (list []item.Row, err error) {
		var reader item.Reader
		edited := map[int64]redrive.Edit{}
		for i, text := range texts {
			edited[ids[i]] = redrive.Edit{Item: json.RawMessage(text)}
		}
		step, err := redrive.NewStep(b.plan(t, redrive.Request{Execution: exec.ID, Edited: edited}), nil, func(s *redrive.Step) (model.Step, error) {
			return chunkless(func(ctx context.Context, run *model.StepRun) (err error) {
				reader, err = s.Reader(ctx, run, itemType, nil)
				return err
			}), nil
		})
		require.NoError(t, err)
		err = step.Execute(t.Context(), &model.StepRun{Services: model.StepServices{Checkpoints: b.Repository}, Step: &core.StepExecution{Name: "load"}})
		if err != nil {
			return nil, err
		}
		items := reader.NewItems(3)
		if err := reader.Fill(t.Context(), items, 3); !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
		for i := range items.Len() {
			list = append(list, items.At(i).(item.Row))
		}
		return list, nil
	}
	rows, err := read(`{"Id":1,"a":"x","n":2,"b":true,"z":null}`, `{"Id":2,"n":2.5}`, `{"Id":3,"a":null,"late":"y"}`)
	require.NoError(t, err)
	require.Equal(t, "{id: int, a: string null, n: float null, b: bool null, z: string null, late: string null}", rows[0].Schema().String())
	require.Equal(t, []row.Value{row.IntValue(1), row.StringValue("x"), row.FloatValue(2), row.BoolValue(true), {}, {}}, rows[0].Values())
	require.Equal(t, row.FloatValue(2.5), rows[1].At(2))
	require.Equal(t, row.StringValue("y"), rows[2].At(5))

	_, err = read(`{"Id":1,"a":"x"}`, `{"Id":2,"a":7}`)
	require.ErrorContains(t, err, fmt.Sprintf("skipped item %d: a has another type than in earlier items", ids[1]))
	_, err = read(`7`)
	require.ErrorContains(t, err, "it is not a JSON object")
	rows, err = read(`{"Id":1,"a":"x"}`, `{"Id":2,"a":[ 1 ]}`, `{"Id":3,"a":7}`)
	require.NoError(t, err)
	require.Equal(t, []row.Value{row.JSONValue(`"x"`), row.JSONValue(`[1]`), row.JSONValue(`7`)}, []row.Value{rows[0].At(1), rows[1].At(1), rows[2].At(1)})
}

func TestARedriveCommitsInTheDatabaseOfTheSkippedItems(t *testing.T) {
	t.Parallel()
	b := newBench(t, testdb.SQLite(t))
	exec, _ := b.stored(t, secretless{ID: 1})
	step, err := redrive.NewStep(b.plan(t, redrive.Request{Execution: exec.ID}), nil, func(*redrive.Step) (model.Step, error) { return chunkless(nil), nil })
	require.NoError(t, err)
	err = step.Execute(t.Context(), &model.StepRun{Services: model.StepServices{Checkpoints: elsewhere{b.Repository}}, Step: &core.StepExecution{}})
	require.ErrorContains(t, err, "writes to database elsewhere, but the skipped items are in database default")

	run := &model.StepRun{Services: model.StepServices{Checkpoints: b.Repository}, Step: &core.StepExecution{Name: "load"}}
	step, err = redrive.NewStep(b.plan(t, redrive.Request{Execution: exec.ID}), nil, func(*redrive.Step) (model.Step, error) {
		return chunkless(func(ctx context.Context, run *model.StepRun) error { return run.UseDatabase(ctx, "elsewhere") }), nil
	})
	require.NoError(t, err)
	var elsewhere *redrive.DatabaseError
	require.ErrorAs(t, step.Execute(t.Context(), run), &elsewhere)
}

type elsewhere struct{ ports.CheckpointStore }

func (elsewhere) Database() string { return "elsewhere" }
