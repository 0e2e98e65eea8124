//test:plain

package json

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type thing struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

func arrayReader(t require.TestingT, cfg readerConfig, itemType item.Type) item.Reader {
	r, err := newArrayReader(cfg, itemType)
	require.NoError(t, err)
	return r
}

func outcomes(t require.TestingT, cfg readerConfig, from item.Position) (all []string) {
	ctx := context.Background()
	r := arrayReader(t, cfg, rows(t))
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(ctx)) }()
	if err := r.Component().(item.Opener).Open(ctx, from); err != nil {
		return []string{strings.ReplaceAll(err.Error(), cfg.Path, "PATH")}
	}
	for {
		items := r.NewItems(1)
		err := r.Fill(ctx, items, 1)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err == nil:
			values := items.At(0).(item.Row).Values()
			all = append(all, values[0].String()+" "+values[1].String()+fmt.Sprint(" ", items.Meta(0).Line))
			continue
		}
		all = append(all, strings.ReplaceAll(err.Error(), cfg.Path, "PATH"))
		if !item.IsConsumed(err) {
			require.False(t, exception.IsSkippable(err))
			again := r.Fill(ctx, r.NewItems(1), 1)
			require.Equal(t, err.Error(), again.Error(), "a failed read has consumed nothing")
			return all
		}
	}
}

const array = "\xEF\xBB\xBF \n[ {\"id\":1,\n \"name\":\"Ann\"} ,\n\n{\"id\":\"x\"}, 7 ,\nnull,{\"id\":2,\"name\":\"B,]é\"}\n,{\"id\":3,\"deep\":[{},[\"]\"]]}\n]\n\n"

func TestTheReaderOfAnArrayKeepsTheReaderContract(t *testing.T) {
	t.Parallel()
	object := `{"n": 1, "skip": {"items": [1, {"a": "}"}]}, "items": ` + strings.TrimPrefix(array, "\xEF\xBB\xBF") + `, "after": 0}`
	for _, c := range []struct{ name, content, key string }{
		{"in.json", array, ""}, {"in.json.gz", array, ""}, {"object.json", object, "items"}, {"object.json.gz", object, "items"},
		{"empty.json", "[]", ""}, {"emptykey.json", `{"items":[ ]}`, "items"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, itemType := range []item.Type{item.TypeOf[thing]("thing"), rows(t)} {
				path := file(t, c.name, c.content)
				itemtest.Reader(t, itemtest.ReaderConfig{
					Source: path,
					New: func(t testing.TB) item.Reader {
						return arrayReader(t, readerConfig{Path: path, Items: c.key}, itemType)
					},
					Change: func(t testing.TB) { require.NoError(t, os.Truncate(path, 1)) },
				})
			}
		})
	}
	require.Equal(t, []string{
		"1 Ann 2",
		`PATH:5, element 2: field id: "x" is not of type int`,
		"PATH:5, element 3: not a JSON object: 7",
		"PATH:6, element 4: not a JSON object: null",
		"2 B,]é 6", "3 null 7",
	}, outcomes(t, readerConfig{Path: file(t, "in.json", array)}, nil))
}

func TestAFileThatIsNoArrayFailsTheStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, key, want string }{
		{`{"a":[]}`, "", `json: PATH:1: at offset 0, after element 0: found "{", expected "[": set items to the path of the array in the object, such as items: data.rows`},
		{`[1]`, "items", `json: PATH:1: at offset 1, after element 0: found "[", expected "{"`},
		{`{"a":{"items":[]}}`, "items", `json: PATH:1: at offset 18, after element 0: the object has no key "items" (there is a)`},
		{`{"items":null}`, "items", `json: PATH:1: at offset 13, after element 0: found null, expected "["`},
		{``, "", `json: PATH:1: at offset 0, after element 0: the file is incomplete: unexpected EOF`},
		{"[", "", `json: PATH:1: at offset 1, after element 0: the file is incomplete: unexpected EOF`},
		{"[{\"id\":1}\n", "", `json: PATH:2: at offset 10, after element 1: the file is incomplete: unexpected EOF`},
		{"[{\"id\":1},\n{\"id\":", "", `json: PATH:2: at offset 17, after element 1: the file is incomplete: unexpected EOF`},
		{"[{\"id\":1},\n\n{\"id\" 2}]", "", `json: PATH:3: at offset 18, after element 1: found "2", expected ":"`},
		{"[{\"id\":1},]", "", `json: PATH:1: at offset 10, after element 1: found "]", expected a value`},
		{"[{\"id\":1}]\n[", "", `json: PATH:2: at offset 11, after element 1: found "[" after the end of the document`},
		{"[{\"id\":1}}", "", `json: PATH:1: at offset 9, after element 1: found "}", expected ","`},
		{`[{"id":1,"name":"` + strings.Repeat("x", 200<<10) + `"}]`, "", `json: PATH:1: at offset 1, after element 0: the element that starts here is longer than 65536 bytes (max_line)`},
		{`[{"id":1}` + strings.Repeat(" ", 200<<10) + `]`, "", `json: PATH:1: at offset 9, after element 1: the element that starts here is longer than 65536 bytes (max_line)`},
		// The text after the array is read, too.
		{`{"items":[{"id":1}]`, "items", `json: PATH:1: at offset 19, after element 1: the file is incomplete: unexpected EOF`},
		{"{\"items\":[{\"id\":1}],\n\"n\":[1,", "items", `json: PATH:2: at offset 28, after element 1: the file is incomplete: unexpected EOF`},
		{"{\"items\":[{\"id\":1}]}\n{", "items", `json: PATH:2: at offset 21, after element 1: found "{" after the end of the document`},
		{"{\"items\":[{\"id\":1}]\n]", "items", `json: PATH:2: at offset 20, after element 1: invalid character ']' after object key:value pair`},
		{`{"items":[{"id":1}],"n":{"items":[]},"items":[]}`, "items", `json: PATH:1: at offset 44, after element 1: the key "items" is there twice`},
		{`{"items":[{"id":1}],"n":"` + strings.Repeat("x", 200<<10) + `"}`, "items", `json: PATH:1: at offset 23, after element 1: the element that starts here is longer than 65536 bytes (max_line)`},
	} {
		got := outcomes(t, readerConfig{Path: file(t, "in.json", c.content), Items: c.key, MaxLine: 64 << 10}, nil)
		require.Equal(t, c.want, got[len(got)-1])
	}
}

func TestAnElementOfAnySizeBeforeTheArrayIsSkipped(t *testing.T) {
	t.Parallel()
	content := `{"big":[` + strings.Repeat("1,\n", 100_000) + `1],"items":[{"id":1}]}`
	cfg := readerConfig{Path: file(t, "in.json", content), Items: "items", MaxLine: 1 << 10}
	require.Equal(t, []string{"1 null 100001"}, outcomes(t, cfg, nil))
}

func TestTheWriterOfAnArrayKeepsTheWriterContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"out.json", "out.json.gz"} {
		path := filepath.Join(t.TempDir(), "new", name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			itemtest.Writer(t, itemtest.WriterConfig{
				New:    func(t testing.TB) item.Writer { return writing(t, path, core.Attempt{Exclusive: true}) },
				NewFor: func(t testing.TB, attempt core.Attempt) item.Writer { return writing(t, path, attempt) },
				Chunks: func(testing.TB) []item.Items {
					return itemtest.Chunks([]thing{{1, "a"}, {2, "b"}}, []thing{{3, "c"}}, []thing{{4, "d"}})
				},
				Contents: func(t testing.TB) string {
					text := seen(t, path)
					require.True(t, text == "" || stdjson.Valid([]byte(text)), text)
					return text
				},
				Clear:  func(t testing.TB) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) },
				Lose:   func(t testing.TB) { itemkit.RemoveParts(t, path) },
				Want:   "[\n{\"id\":1,\"name\":\"a\"},\n{\"id\":2,\"name\":\"b\"},\n{\"id\":3,\"name\":\"c\"},\n{\"id\":4,\"name\":\"d\"}\n]\n",
				Hidden: true,
			})
		})
	}
}

func writing(t testing.TB, path string, attempt core.Attempt) item.Writer {
	w, err := newArrayWriter(writerConfig{Path: path}, itemtest.Use(item.TypeOf[thing]("thing"), attempt))
	require.NoError(t, err)
	return w
}

func TestWhateverArrayIsReadAndRestarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		blank := func() string {
			return rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t"}).Draw(t, "blank")
		}
		n := rapid.IntRange(0, 8).Draw(t, "elements")
		text, want := blank()+"["+blank(), []string{}
		for i := range n {
			name := rapid.StringOf(rapid.RuneFrom([]rune("a]}[{,\":\\\né"))).Draw(t, "name")
			element, err := stdjson.Marshal(map[string]any{"id": i, "name": name})
			require.NoError(t, err)
			if i > 0 {
				text += "," + blank()
			}
			text += string(element) + blank()
			want = append(want, fmt.Sprint(i, " ", name))
		}
		text += "]" + blank()
		cfg := readerConfig{Path: filepath.Join(dir, "in.json")}
		if rapid.Bool().Draw(t, "under a key") {
			text, cfg.Items = `{"x":[`+blank()+`],"k":`+text+"}", "k"
		}
		require.NoError(t, os.WriteFile(cfg.Path, []byte(text), 0o600))
		all := outcomes(t, cfg, nil)
		require.Len(t, all, n)
		for i := range all {
			require.Equal(t, want[i], all[i][:strings.LastIndexByte(all[i], ' ')])
		}
		ctx := context.Background()
		first := arrayReader(t, cfg, rows(t))
		require.NoError(t, first.Component().(item.Opener).Open(ctx, nil))
		for i := range n + 1 {
			at, err := first.Component().(item.Positioner).Position()
			require.NoError(t, err)
			require.Equal(t, append([]string{}, all[i:]...), append([]string{}, outcomes(t, cfg, at)...))
			if err := first.Fill(ctx, first.NewItems(1), 1); err != nil {
				require.ErrorIs(t, err, io.EOF)
			}
		}
		require.NoError(t, first.Component().(item.Closer).Close(ctx))
	})
}
