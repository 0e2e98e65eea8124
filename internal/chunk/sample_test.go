package chunk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// untouchable is a writer that a sample must leave alone.
type untouchable struct{ t *testing.T }

func (w untouchable) Open(context.Context, item.Position) error             { return w.touched() }
func (w untouchable) Close(context.Context) error                           { return w.touched() }
func (w untouchable) Write(context.Context, []string) error                 { return w.touched() }
func (w untouchable) Finish(context.Context) error                          { return w.touched() }
func (w untouchable) BeforeChunk(context.Context) error                     { return w.touched() }
func (w untouchable) AfterRead(context.Context, any) error                  { return w.touched() }
func (w untouchable) OnSkipProcess(_ context.Context, _ any, _ error) error { return w.touched() }

func (w untouchable) touched() error {
	w.t.Error("a sample calls neither writers nor listeners")
	return nil
}

type textOf func(ctx context.Context, i int) (string, error)

func (f textOf) Process(ctx context.Context, i int) (string, error) { return f(ctx, i) }

type shout struct{}

func (shout) Process(_ context.Context, text string) (string, error) {
	return strings.ToUpper(text), nil
}

func sampled(t *testing.T, e *testengine.Engine, c chunk.Config, r item.ItemReader[int], f textOf, n int) ([]string, error) {
	t.Helper()
	c.Name, c.Database = "load", e.Database
	c.Assemble = func(context.Context, *model.StepRun) (chunk.Parts, error) {
		return chunk.Parts{
			Reader: item.EraseReader(r), Processors: []item.Processor{item.EraseProcessor[int, string](f), item.EraseProcessor[string, string](shout{})},
			Writers: []item.Writer{item.EraseWriter[string](untouchable{t})}, Listeners: []any{untouchable{t}},
		}, nil
	}
	s, err := chunk.New(c)
	require.NoError(t, err)
	var lines []string
	err = s.Sample(t.Context(), &model.StepRun{Data: model.StepContext{Job: &core.JobExecution{}}}, n, func(got chunk.Sampled) error {
		line := fmt.Sprintf("%d %s %s %s", got.Number, got.Read, got.Stages, got.Fate)
		if got.Err != nil {
			line += fmt.Sprintf(" %s %s: %v", got.Phase, got.Class, got.Err)
		}
		lines = append(lines, line)
		return nil
	})
	return lines, err
}

func TestASampleShowsEachItemBeforeAndAfterEachProcessorAndWritesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		r := &seekable{numbers: numbers{n: 100}}
		lines, err := sampled(t, e, chunk.Config{Skip: chunk.LimitSkip{Limit: 1}}, r, func(_ context.Context, i int) (string, error) {
			switch i + 1 {
			case 2:
				return "", item.ErrFilter
			case 3, 4:
				return "", exception.InvalidItem("price", exception.ClassValidate, errBad)
			case 5:
				panic("five")
			}
			return fmt.Sprintf("n%d", i), nil
		}, 6)
		require.NoError(t, err)
		require.Equal(t, []string{
			`1 0 ["n0" "N0"] written`,
			`2 1 [] filtered`,
			`3 2 [] skipped process validate: process: price: bad`,
			`4 3 [] failed process validate: skip limit of 1 exceeded; last cause: process: price: bad`,
			`5 4 [] failed process : process: panic: five`,
			`6 5 ["n5" "N5"] written`,
		}, lines)
		require.Equal(t, 1, r.closed)
		require.Empty(t, e.Ints(allRows))
		require.Empty(t, e.Ints("select id from surfin_job_execution"))
	})
}

func TestASampleEndsWithTheData(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	lines, err := sampled(t, e, chunk.Config{}, &numbers{n: 2}, func(_ context.Context, i int) (string, error) { return "x", nil }, 20)
	require.NoError(t, err)
	require.Len(t, lines, 2)
}

type flawed struct {
	numbers
	consumes bool
	failed   bool
}

func (r *flawed) Rereads() {}

func (r *flawed) Read(ctx context.Context) (int, error) {
	if r.next == 1 && !r.failed {
		if r.consumes {
			r.failed = true
			return 0, item.Consumed(item.Meta{Path: "in.csv", Line: 3}, exception.InvalidItem("", exception.ClassParse, errBad))
		}
		return 0, exception.InvalidItem("", exception.ClassParse, errBad)
	}
	return r.numbers.Read(ctx)
}

func TestAReadThatFailsIsShownAndTheSampleGoesOnIfTheReaderCan(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	same := func(_ context.Context, i int) (string, error) { return fmt.Sprint(i), nil }
	lines, err := sampled(t, e, chunk.Config{}, &flawed{numbers: numbers{n: 3}, consumes: true}, same, 9)
	require.NoError(t, err)
	require.Equal(t, []string{`1 0 ["0" "0"] written`, `2  [] failed read parse: in.csv:3: bad`, `3 1 ["1" "1"] written`, `4 2 ["2" "2"] written`}, lines)

	lines, err = sampled(t, e, chunk.Config{Skip: chunk.LimitSkip{Limit: 5}}, &flawed{numbers: numbers{n: 3}}, same, 9)
	require.NoError(t, err)
	require.Equal(t, []string{`1 0 ["0" "0"] written`, `2  [] failed read parse: bad (the reader cannot skip an item that it failed to read: implement SkipItem, or return batch.Consumed if the item is consumed)`}, lines)
}

func TestAProcessorThatWritesIsRefusedInASample(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		var failures []error
		lines, err := sampled(t, e, chunk.Config{ProcessInTransaction: true}, &numbers{n: 2}, func(ctx context.Context, i int) (string, error) {
			if i == 1 {
				return "two", nil
			}
			_, err := tx.ConnOf(ctx, e.Database).ExecContext(ctx, "insert into out(id) values (1)")
			failures = append(failures, err)
			return "", err
		}, 2)
		require.NoError(t, err)
		require.Len(t, failures, 1)
		require.True(t, dberr.IsReadOnly(failures[0]), failures[0])
		require.Equal(t, `2 1 ["two" "TWO"] written`, lines[1], "an item's failure is not the next one's")
		require.Empty(t, e.Ints(allRows))
	})
}

func TestASampleThatCannotBeginSaysWhyAndClosesWhatItOpened(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	s, err := chunk.New(chunk.Config{Name: "load", Database: e.Database, Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) { panic("no parts") }})
	require.NoError(t, err)
	see := func(chunk.Sampled) error { return nil }
	require.ErrorContains(t, s.Sample(t.Context(), &model.StepRun{Data: model.StepContext{Job: &core.JobExecution{}}}, 1, see), "panic: no parts")

	ctx, cancel := context.WithCancelCause(t.Context())
	r := &seekable{numbers: numbers{n: 5}}
	s, err = chunk.New(chunk.Config{Name: "load", Database: e.Database, Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
		return chunk.Parts{Reader: item.EraseReader(r)}, nil
	}})
	require.NoError(t, err)
	enough := errors.New("enough")
	err = s.Sample(ctx, &model.StepRun{Data: model.StepContext{Job: &core.JobExecution{}}}, 5, func(got chunk.Sampled) error {
		require.True(t, json.Valid(got.Read))
		cancel(enough)
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, r.closed)
}
