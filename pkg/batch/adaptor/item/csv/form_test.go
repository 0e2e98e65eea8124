package csv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func formWriter(t testing.TB, cfg writerConfig, itemType item.Type) (item.Writer, *writer) {
	t.Helper()
	w, err := newWriter(cfg, registry.BuildContext{In: itemType})
	require.NoError(t, err)
	return w, w.Component().(*writer)
}

func nulls(t testing.TB, w item.Writer, itemType item.Type) error {
	t.Helper()
	s := itemType.Schema()
	return w.Write(t.Context(), itemtest.Chunks([]item.Row{row.New(s, make([]row.Value, s.Len()))})[0])
}

// begun commits a record and returns the position.
func begun(t testing.TB, cfg writerConfig, itemType, items item.Type) item.Position {
	t.Helper()
	w, c := formWriter(t, cfg, itemType)
	require.NoError(t, c.Open(t.Context(), nil))
	if items != nil {
		require.NoError(t, nulls(t, w, items))
	}
	require.NoError(t, c.Prepare(t.Context()))
	at := must(c.Position())
	require.NoError(t, c.Release(t.Context()))
	require.NoError(t, c.Close(t.Context()))
	return at
}

func TestAFileThatWasBegunInAnotherFormIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	field := func(f row.Field) item.Type {
		f.Name, f.Nullable = "day", true
		return schema(t, row.Field{Name: "id", Kind: row.String, Nullable: true}, f)
	}
	long := func(last string) item.Type {
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprintf("column_%d", i))
		}
		return texts(t, append(names, last)...)
	}
	usual, ab := writerConfig{Header: true}, texts(t, "a", "b")
	for _, c := range []struct {
		from, to         writerConfig
		fromType, toType item.Type
		has, now         string // both empty: it is the same form
	}{
		{usual, writerConfig{Header: true, Delimiter: ",", LineEnd: "lf", Quote: "minimal", Encoding: "utf-8", Compression: "none"}, ab, ab, "", ""},
		{writerConfig{Encoding: "latin1"}, writerConfig{Encoding: "iso-8859-1"}, ab, ab, "", ""},
		{usual, usual, ab, texts(t, "a", "c"), "columns a, b", "columns a, c"},
		{usual, usual, ab, texts(t, "b", "a"), "columns a, b", "columns b, a"},
		{writerConfig{}, writerConfig{}, ab, texts(t, "a", "b", "c"), "columns a, b", "columns a, b, c"},
		{usual, usual, ab, texts(t, "a,b"), "columns a, b", `columns "a,b"`},
		{usual, usual, long("x"), long("y"), "columns column_0, ", "columns column_0, "},
		{usual, usual, field(row.Field{Kind: row.DateKind}), field(row.Field{Kind: row.DateKind, Format: "dd.MM.yyyy"}), "columns id, day", "columns id, day (format dd.MM.yyyy)"},
		{usual, usual, field(row.Field{Kind: row.Int}), field(row.Field{Kind: row.Int, Nulls: []string{"NA"}}), "columns id, day", `columns id, day (null "NA")`},
		{usual, usual, field(row.Field{Kind: row.Int}), field(row.Field{Kind: row.String, Nulls: []string{""}}), "", ""},
		{usual, writerConfig{}, ab, ab, "header true", "header false"},
		{usual, writerConfig{Header: true, Delimiter: "tab", Quote: "all"}, ab, ab, `delimiter ","; quote minimal`, `delimiter "\t"; quote all`},
		{usual, writerConfig{Header: true, LineEnd: "crlf"}, ab, ab, "line_end lf", "line_end crlf"},
		{usual, writerConfig{Header: true, Nulls: "NULL"}, ab, ab, `nulls ""`, `nulls "NULL"`},
		{usual, writerConfig{Header: true, Encoding: "utf-16"}, ab, ab, "encoding utf-8", "encoding utf-16"},
		{usual, writerConfig{Header: true, Compression: "gzip"}, ab, ab, "compression none", "compression gzip"},
	} {
		path := filepath.Join(t.TempDir(), "out.csv")
		c.from.Path, c.to.Path = path, path
		at := begun(t, c.from, c.fromType, c.fromType)
		part := itemkit.Parts(t, path)[0]
		before := content(t, part)
		w, writing := formWriter(t, c.to, c.toType)
		err := writing.Open(t.Context(), at)
		if c.has == "" {
			require.NoError(t, err)
			require.NoError(t, nulls(t, w, c.toType))
		} else {
			require.ErrorContains(t, err, "csv: cannot restart: the file was started with "+c.has)
			require.ErrorContains(t, err, ", but now it is "+c.now)
			require.ErrorContains(t, err, part)
			require.ErrorAs(t, err, new(*filestream.FormError))
			require.Less(t, len(err.Error()), 2000)
			require.Equal(t, before, content(t, part))
		}
		require.NoError(t, writing.Close(t.Context()))
		require.Equal(t, []string{part}, itemkit.Parts(t, path))
	}
}

// A different first item is not the item's fault: no item fits the file any
// more.
func TestTheFirstItemOfAnOpenSchemaTellsAnotherForm(t *testing.T) {
	t.Parallel()
	open, err := row.Open()
	require.NoError(t, err)
	any := item.RowOf("", open)
	cfg := writerConfig{Header: true, Path: filepath.Join(t.TempDir(), "out.csv")}
	at := begun(t, cfg, any, texts(t, "a"))
	w, c := formWriter(t, cfg, any)
	require.NoError(t, c.Open(t.Context(), at))
	err = nulls(t, w, texts(t, "a", "b"))
	require.ErrorContains(t, err, "the file was started with columns a, but now it is columns a, b: ")
	require.False(t, exception.IsSkippable(err))
	require.NoError(t, nulls(t, w, texts(t, "a")))
	require.ErrorContains(t, nulls(t, w, texts(t, "b")), "csv: the file has the columns a, but the item has b", "later ones are the fault of the item")
	require.NoError(t, c.Prepare(t.Context()))
	next := must(c.Position())
	require.NoError(t, c.Close(t.Context()))

	_, closed := formWriter(t, cfg, texts(t, "b"))
	require.ErrorContains(t, closed.Open(t.Context(), next), "the file was started with columns a, but now it is columns b: ", "a type was declared since")
	require.NoError(t, closed.Close(t.Context()))
}

func TestAFileOfWhichNothingIsCommittedTakesTheNewForm(t *testing.T) {
	t.Parallel()
	for _, declared := range []bool{true, false} {
		open, err := row.Open()
		require.NoError(t, err)
		first, second := item.RowOf("", open), item.RowOf("", open)
		if declared {
			first, second = texts(t, "a"), texts(t, "a", "b")
		}
		cfg := writerConfig{Path: filepath.Join(t.TempDir(), "out.csv")}
		at := begun(t, cfg, first, nil)
		cfg.Header = true
		w, c := formWriter(t, cfg, second)
		require.NoError(t, c.Open(t.Context(), at))
		require.NoError(t, nulls(t, w, texts(t, "a", "b")))
		require.NoError(t, c.Rewind(t.Context(), at))
		require.NoError(t, nulls(t, w, texts(t, "a", "b")))
		require.NoError(t, c.Release(t.Context()))
		require.NoError(t, c.Finish(t.Context()))
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, "a,b\n,\n", content(t, cfg.Path))
	}
}

type wide struct {
	Text string
	More int
}

type poisoned[T any] struct {
	left  int
	cured bool
	at    int
}

func (r *poisoned[T]) Read(context.Context) (item T, err error) {
	switch {
	case r.at < r.left:
		r.at++
		return item, nil
	case r.cured:
		return item, io.EOF
	}
	return item, errors.New("it cannot be read")
}

// exportOf is a job in Go that writes items of this type and skips and retries all errors that it can.
func exportOf[T any](t *testing.T, e *testengine.Engine, path string, items int, cured bool) *model.Job {
	t.Helper()
	s, err := chunk.New(chunk.Config{
		Name: "export", Size: 2, Database: e.Database, Skip: skipWrites{}, Isolate: chunk.IsolateBisect,
		Retry: chunk.Retry{Limit: 5, Retryable: func(error) bool { return true }},
		Assemble: func(_ context.Context, run *model.StepRun) (chunk.Parts, error) {
			out, err := newWriter(writerConfig{Path: path, Header: true}, registry.BuildContext{In: item.TypeOf[T]("line"), Attempt: chunk.AttemptOf(run)})
			return chunk.Parts{Reader: item.EraseReader(&poisoned[T]{left: items, cured: cured}), Writers: []item.Writer{out}}, err
		},
	})
	require.NoError(t, err)
	return testengine.Job("export", &model.StepElement{Step: s})
}

type skipWrites struct{}

func (skipWrites) Admit(err error, _ int64) (bool, error) {
	return !strings.Contains(err.Error(), "it cannot be read"), nil
}

func TestAJobWhoseItemTypeChangedFailsAtOpenAndRunsFromTheStart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		path := filepath.Join(t.TempDir(), "out.csv")
		e := testengine.New(t, url)
		exec, err := e.Launcher.Run(t.Context(), exportOf[line](t, e, path, 2, false), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "it cannot be read")
		part := itemkit.Parts(t, path)[0]
		for range 2 {
			exec, err = e.Launcher.Run(t.Context(), exportOf[wide](t, e, path, 4, true), core.Parameters{}, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, exec.Error, "the file was started with columns text, but now it is columns text, more: ")
			require.NoFileExists(t, path)
			data, err := os.ReadFile(part)
			require.NoError(t, err)
			require.Equal(t, "text\n\"\"\n\"\"\n", string(data))
		}
		exec, err = e.Launcher.With(job.Options{FromStart: true}).Run(t.Context(), exportOf[wide](t, e, path, 3, true), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, "text,more\n,0\n,0\n,0\n", content(t, path))
		require.Empty(t, itemkit.Parts(t, path))
	})
}
