package chunk_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type badReader[T any] struct {
	texts []string
	next  int
}

func (r *badReader[T]) Read(context.Context) (none T, err error) {
	if r.next == len(r.texts) {
		return none, io.EOF
	}
	r.next++
	return none, item.Consumed(item.Meta{Path: "in", Line: int64(r.next)}, exception.InvalidItem("", exception.ClassParse, io.ErrUnexpectedEOF))
}

func (r *badReader[T]) RawText() item.RawText {
	text := r.texts[r.next-1]
	return item.RawText{Text: text, Offset: 7, Length: int64(len(text))}
}

type discard[T any] struct{}

func (discard[T]) Write(context.Context, []T) error { return nil }

func skippedTexts[T any](t *testing.T, url, job string, texts ...string) []core.SkippedItem {
	t.Helper()
	e := testengine.New(t, url)
	step, err := chunk.New(chunk.Config{
		Name: "load", Database: e.Database, Size: 10, Skip: chunk.LimitSkip{Limit: 1000},
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{
				Reader:  item.EraseReader[T](&badReader[T]{texts: texts}),
				Writers: []item.Writer{item.EraseWriter[T](discard[T]{})},
			}, nil
		},
	})
	require.NoError(t, err)
	exec := e.Run(testengine.Job(job, &model.StepElement{Step: step}))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	found, err := e.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID, Limit: 1000})
	require.NoError(t, err)
	require.EqualValues(t, len(texts), e.Step(exec, "load").Counters.ReadSkip)
	return found
}

func TestTheTextOfAFailedReadIsStoredWithItsSkip(t *testing.T) {
	t.Parallel()
	type card struct {
		Number string `redact:"true"`
	}
	testdb.Each(t, func(t *testing.T, url string) {
		found := skippedTexts[int](t, url, "numbers", "a\x00b", "", strings.Repeat("x", item.MaxPayloadBytes))
		require.Len(t, found, 3)
		require.Equal(t, &item.RawText{Text: "a\x00b", Offset: 7, Length: 3}, found[0].Raw)
		require.False(t, found[0].Truncated)
		require.Nil(t, found[1].Raw, "a reader without a text says so by its length")
		require.True(t, found[2].Truncated)
		require.NotEmpty(t, found[2].SHA256)
		require.Nil(t, found[2].Item)

		found = skippedTexts[card](t, url, "cards", "1234-5678")
		require.Equal(t, &item.RawText{Offset: 7, Length: 9}, found[0].Raw)
		require.True(t, found[0].Truncated)
		require.Empty(t, found[0].SHA256)
	})
}

func TestManyLongTextsEndAChunk(t *testing.T) {
	t.Parallel()
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = strings.Repeat("x", 60<<10)
	}
	require.Len(t, skippedTexts[int](t, testdb.SQLite(t), "numbers", texts...), 200)
}
