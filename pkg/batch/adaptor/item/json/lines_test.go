package json

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type tagged struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags,omitempty"`
}

const content = "\xEF\xBB\xBF" + `{"id":1,"name":"Ann","tags":["a","b"]}

{"id":"two","name":"Bob"}
{"id":3,"name":"C\ny"}` + "\r\n" + `  {"name":"Dé","id":4,"more":{}}
null
{"id":5
{"id":6,"name":"end"}`

func readingLines(path string, itemType item.Type) func(testing.TB) item.Reader {
	return func(t testing.TB) item.Reader {
		r, err := newLinesReader(linesReaderConfig{Path: path}, itemType)
		require.NoError(t, err)
		return r
	}
}

func TestTheReaderOfLinesKeepsTheReaderContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"in.jsonl", "in.jsonl.gz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, name, content)
			itemtest.Reader(t, itemtest.ReaderConfig{
				Source: path,
				New:    readingLines(path, item.TypeOf[tagged]("thing")),
				Want: []any{
					tagged{1, "Ann", []string{"a", "b"}}, tagged{ID: 3, Name: "C\ny"}, tagged{ID: 4, Name: "Dé"}, tagged{ID: 6, Name: "end"},
				},
				Change: func(t testing.TB) { require.NoError(t, os.Truncate(path, 20)) },
			})
			path = file(t, name, content)
			itemtest.Reader(t, itemtest.ReaderConfig{Source: path, New: readingLines(path, rows(t))})
		})
	}
}

func linesOutcomes(t require.TestingT, r item.Reader, path string, from item.Position) (all []string) {
	ctx := context.Background()
	require.NoError(t, r.Component().(item.Opener).Open(ctx, from))
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(ctx)) }()
	for {
		items := r.NewItems(1)
		err := r.Fill(ctx, items, 1)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case item.IsConsumed(err):
			require.True(t, exception.IsSkippable(err))
			all = append(all, strings.TrimPrefix(err.Error(), path))
		default:
			require.NoError(t, err)
			values := items.At(0).(item.Row).Values()
			all = append(all, values[0].String()+" "+values[1].String())
		}
	}
}

func TestAnInvalidLineIsNamedAndReadingGoesOn(t *testing.T) {
	t.Parallel()
	path := file(t, "in.jsonl", content)
	require.Equal(t, []string{
		"1 Ann",
		`:3: field id: "two" is not of type int`,
		"3 C\ny", "4 Dé",
		":6: not a JSON object: null",
		`:7: not JSON: the text ends inside a value: {"id":5`,
		"6 end",
	}, linesOutcomes(t, readingLines(path, rows(t))(t), path, nil))
}

func TestALineLongerThanTheLimitIsInvalidAndCostsNoMemory(t *testing.T) {
	t.Parallel()
	long := `{"id":2,"name":"` + strings.Repeat("x", 500<<10) + "\"}\n"
	for _, max := range []registry.Size{100, 200 << 10} {
		path := file(t, "in.jsonl", "{\"id\":1}\n"+long+"{\"id\":3}\n"+long)
		r, err := newLinesReader(linesReaderConfig{Path: path, MaxLine: max}, rows(t))
		require.NoError(t, err)
		all := linesOutcomes(t, r, path, nil)
		require.Len(t, all, 4)
		require.Equal(t, "1 null", all[0])
		require.Contains(t, all[1], ":2: the line has 512018 bytes, more than ")
		require.Equal(t, "3 null", all[2])
		require.Contains(t, all[3], ":4: the line has 512018 bytes, more than ")
	}
	path := file(t, "in.jsonl", long)
	require.Len(t, linesOutcomes(t, readingLines(path, rows(t))(t), path, nil), 1)
}

func TestTheWriterOfLinesKeepsTheWriterContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"out.jsonl", "out.jsonl.gz"} {
		path := filepath.Join(t.TempDir(), "new", name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			itemtest.Writer(t, itemtest.WriterConfig{
				New:    func(t testing.TB) item.Writer { return writingLines(t, path, core.Attempt{Exclusive: true}) },
				NewFor: func(t testing.TB, attempt core.Attempt) item.Writer { return writingLines(t, path, attempt) },
				Chunks: func(testing.TB) []item.Items {
					return itemtest.Chunks([]tagged{{ID: 1, Name: "a\nb"}, {ID: 2}}, []tagged{{ID: 3, Tags: []string{"x"}}})
				},
				Contents: func(t testing.TB) string { return seen(t, path) },
				Clear:    func(t testing.TB) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) },
				Lose:     func(t testing.TB) { itemkit.RemoveParts(t, path) },
				Want:     `{"id":1,"name":"a\nb"}` + "\n" + `{"id":2,"name":""}` + "\n" + `{"id":3,"name":"","tags":["x"]}` + "\n",
				Hidden:   true,
			})
		})
	}
}

func writingLines(t testing.TB, path string, attempt core.Attempt) item.Writer {
	w, err := newLinesWriter(writerConfig{Path: path}, itemtest.Use(item.TypeOf[tagged]("thing"), attempt))
	require.NoError(t, err)
	return w
}

func TestADocumentOverSeveralLinesIsWrittenOnOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	w, err := jsonfile.NewLinesWriter(jsonfile.WriterConfig{Path: path}, registry.BuildContext{})
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, w.Open(ctx, nil))
	require.NoError(t, w.WriteDocuments(ctx, [][]byte{[]byte("{\n \"a\": 1\r\n}"), []byte("2")}))
	require.True(t, exception.IsSkippable(w.WriteDocuments(ctx, [][]byte{[]byte("3"), []byte("{\n")})))
	require.NoError(t, w.Release(ctx))
	require.NoError(t, w.Finish(ctx))
	require.NoError(t, w.Close(ctx))
	require.Equal(t, "{\"a\":1}\n2\n", seen(t, path))
}

func isJunk(text string) bool { return !stdjson.Valid([]byte(text)) }

func TestWhateverLinesAreReadAndRestarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var want []string
		for i := range rapid.IntRange(0, 20).Draw(t, "lines") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				text.WriteString("  ")
			case 1:
				text.WriteString(rapid.StringOf(rapid.RuneFrom([]rune(`{"id:,1 }`))).Filter(isJunk).Draw(t, "junk"))
			default:
				name := rapid.String().Draw(t, "name")
				line, err := stdjson.Marshal(map[string]any{"id": i, "name": name})
				require.NoError(t, err)
				text.Write(line)
				want = append(want, name)
			}
			text.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		}
		path := filepath.Join(dir, "in.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		open := func() item.Reader {
			r, err := newLinesReader(linesReaderConfig{Path: path}, rows(t))
			require.NoError(t, err)
			return r
		}
		all := linesOutcomes(t, open(), path, nil)
		var names []string
		for _, o := range all {
			if id, name, ok := strings.Cut(o, " "); ok && !strings.HasPrefix(id, ":") {
				names = append(names, name)
			}
		}
		require.Equal(t, want, names)

		ctx := context.Background()
		first := open()
		require.NoError(t, first.Component().(item.Opener).Open(ctx, nil))
		for i := 0; ; i++ {
			at, err := first.Component().(item.Positioner).Position()
			require.NoError(t, err)
			require.Equal(t, len(all)-i, len(linesOutcomes(t, open(), path, at)))
			if err := first.Fill(ctx, first.NewItems(1), 1); errors.Is(err, io.EOF) {
				break
			}
		}
		require.NoError(t, first.Component().(item.Closer).Close(ctx))
	})
}

func TestAChangedFileIsReadOnWhereChangesAreAccepted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "in.jsonl")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	newReader := readingLines(path, item.TypeOf[tagged]("tagged"))
	write("{\"id\":1,\"name\":\"a\"}\n{\"id\":\"x\"}\n")
	r := newReader(t)
	require.NoError(t, r.Component().(item.Opener).Open(ctx, nil))
	require.NoError(t, r.Fill(ctx, r.NewItems(1), 1))
	at, err := r.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Closer).Close(ctx))

	write("{\"id\":1,\"name\":\"a\"}\n{\"id\":2}\n{\"id\":3}\n")
	r = newReader(t)
	require.ErrorContains(t, r.Component().(item.Opener).Open(ctx, at), "changed")
	require.NoError(t, r.Component().(item.Closer).Close(ctx))
	r = newReader(t)
	r.Component().(itemextra.ChangesAccepter).AcceptChanges()
	require.NoError(t, r.Component().(item.Opener).Open(ctx, at))
	items := r.NewItems(2)
	require.NoError(t, r.Fill(ctx, items, 2))
	require.Equal(t, []any{tagged{ID: 2}, tagged{ID: 3}}, []any{items.At(0), items.At(1)})
	require.NoError(t, r.Component().(item.Closer).Close(ctx))
}

func TestAFileThatAnotherWriterBeganIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	ctx, itemType := t.Context(), item.TypeOf[thing]("thing")
	writers := map[string]func(path string) (item.Writer, error){
		"json": func(path string) (item.Writer, error) {
			return newArrayWriter(writerConfig{Path: path}, registry.BuildContext{In: itemType})
		},
		"jsonl": func(path string) (item.Writer, error) {
			return newLinesWriter(writerConfig{Path: path}, registry.BuildContext{In: itemType})
		},
		"zipped": func(path string) (item.Writer, error) {
			return newLinesWriter(writerConfig{Path: path, Compression: "gzip"}, registry.BuildContext{In: itemType})
		},
	}
	for _, c := range []struct {
		from, to, want string
		things         []thing
	}{
		{"json", "jsonl", "jsonl: cannot restart: the file was started with writer json, but now it is writer jsonl: ", []thing{{1, "a"}}},
		{"json", "jsonl", "the file was started with writer json, but now it is writer jsonl: ", nil},
		{"jsonl", "json", "json: cannot restart: the file was started with writer jsonl, but now it is writer json: ", []thing{{1, "a"}}},
		{"jsonl", "zipped", "the file was started with compression none, but now it is compression gzip: ", []thing{{1, "a"}}},
		{"jsonl", "json", "", nil}, // nothing is in the file
		{"zipped", "json", "", nil},
	} {
		path := filepath.Join(t.TempDir(), "out.txt")
		w, err := writers[c.from](path)
		require.NoError(t, err)
		first := w.Component().(*jsonfile.Writer)
		require.NoError(t, first.Open(ctx, nil))
		if c.things != nil {
			require.NoError(t, w.Write(ctx, itemtest.Chunks(c.things)[0]))
		}
		require.NoError(t, first.Prepare(ctx))
		at, err := first.Position()
		require.NoError(t, err)
		require.NoError(t, first.Release(ctx))
		require.NoError(t, first.Close(ctx))
		part := itemkit.Parts(t, path)[0]
		before, err := os.ReadFile(part)
		require.NoError(t, err)

		w, err = writers[c.to](path)
		require.NoError(t, err)
		second := w.Component().(*jsonfile.Writer)
		err = second.Open(ctx, at)
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			require.ErrorAs(t, err, new(*filestream.FormError))
			require.NoError(t, second.Close(ctx))
			after, err := os.ReadFile(part)
			require.NoError(t, err)
			require.Equal(t, before, after)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, w.Write(ctx, itemtest.Chunks([]thing{{2, "b"}})[0]))
		require.NoError(t, second.Release(ctx))
		require.NoError(t, second.Finish(ctx))
		require.NoError(t, second.Close(ctx))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "[\n{\"id\":2,\"name\":\"b\"}\n]\n", string(data))
	}
}
