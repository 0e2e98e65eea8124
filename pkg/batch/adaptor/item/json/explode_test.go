package json

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const orders = `{"data":{"v":1,"orders":[
 {"id":1,"buyer":{"name":"Ann"},"lines":[{"sku":"a","n":1},
  {"sku":"b","n":"two"} , {"sku":"c","n":3}]},
 {"id":2,"buyer":{"name":"Bob"},"lines":[]}, {"id":3,"lines":null}, {"id":4},
 {"id":5,"lines":{"sku":"no array"}},
 {"id":6,"buyer":{"name":"Cy"},"lines":[{"sku":"d","n":4,"n":5},{"sku":"e","n":6,"more":[{"x":[1, 2]}]}]}
],"w":2}}`

func orderLines(t require.TestingT) item.Type {
	s, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "buyer", Kind: row.String, Nullable: true, From: "buyer.name"},
		row.Field{Name: "sku", Kind: row.String, From: "lines.sku"}, row.Field{Name: "n", Kind: row.Int, From: "lines.n"},
		row.Field{Name: "more", Kind: row.String, Nullable: true, From: "lines.more"},
	)
	require.NoError(t, err)
	return item.RowOf("", s)
}

func described(t testing.TB, r item.Reader, path string) (all []string) {
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(context.Background())) }()
	for {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			require.True(t, item.IsConsumed(err), err)
			all = append(all, strings.ReplaceAll(err.Error(), path, "PATH"))
			continue
		}
		var values []string
		for _, v := range items.At(0).(item.Row).Values() {
			values = append(values, v.String())
		}
		all = append(all, strings.ReplaceAll(items.Meta(0).String(), path, "PATH")+" = "+strings.Join(values, " "))
	}
}

// Rule D9b.
func TestTheElementsOfAnArrayInADocumentBecomeRows(t *testing.T) {
	t.Parallel()
	path := file(t, "orders.json", orders)
	cfg := readerConfig{Path: path, Items: "data.orders", Explode: "lines"}
	require.Equal(t, []string{
		"PATH:2, element 1, row 1 = 1 Ann a 1 null",
		`PATH:3, element 1, row 2: field n: "two" is not of type int`,
		"PATH:3, element 1, row 3 = 1 Ann c 3 null",
		`PATH:5, element 5: lines is not an array (explode): {"sku":"no array"}`,
		`PATH:6, element 6, row 1: the key "n" is there twice (byte 56): {"id":6,"buyer":{"name":"Cy"},"lines":{"sku":"d","n":4,"n":5…`,
		`PATH:6, element 6, row 2 = 6 Cy e 6 [{"x":[1, 2]}]`,
	}, described(t, arrayReader(t, cfg, orderLines(t)), path))

	bad := rawTexts(itemkit.UnreadItems(t, arrayReader(t, cfg, orderLines(t))))
	require.Equal(t, `{"id":1,"buyer":{"name":"Ann"},"lines":{"sku":"b","n":"two"}}`, bad[0].Text, "one row, as a document of its own")
	require.Equal(t, `{"sku":"b","n":"two"}`, orders[bad[0].Offset:bad[0].Offset+bad[0].Length])

	// Each line of jsonl, and tags that are not objects.
	tags, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "tag", Kind: row.String, From: "tags"})
	require.NoError(t, err)
	path = file(t, "tags.jsonl", "{\"id\":1,\"tags\":[\"x\",null]}\n{\"id\":2,\n{\"tags\":[\"y\"],\"id\":3}")
	lines, err := newLinesReader(linesReaderConfig{Path: path, Explode: "tags"}, item.RowOf("", tags))
	require.NoError(t, err)
	require.Equal(t, []string{
		"PATH:1, row 1 = 1 x", `PATH:1, row 2: field tag: null is not a string (the field is not nullable)`,
		`PATH:2: not JSON: the text ends inside a value: {"id":2,`, "PATH:3, row 1 = 3 y",
	}, described(t, lines, path))
}

// Rule D9b.
func TestAReaderOfRowsOfElementsKeepsTheReaderContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders.json", "orders.json.gz"} {
		path := file(t, name, orders)
		itemtest.Reader(t, itemtest.ReaderConfig{
			Source: path,
			New: func(t testing.TB) item.Reader {
				return arrayReader(t, readerConfig{Path: path, Items: "data.orders", Explode: "lines"}, orderLines(t))
			},
			Change: func(t testing.TB) { require.NoError(t, os.Truncate(path, 1)) },
		})
	}
}

func TestACorrectedRowOfAnElementIsReadAsThatRow(t *testing.T) {
	t.Parallel()
	r := arrayReader(t, readerConfig{Path: "gone.json", Explode: "lines"}, orderLines(t))
	meta := item.Meta{Path: "in.json", Line: 4, Index: 7, Row: 2}
	for text, want := range map[string]string{
		`{"id":1,"lines":{"sku":"b","n":2}}`:  "",
		`{"id":1,"lines":{"sku":"b","n":[]}}`: "in.json:4, element 7, row 2: field n: [] is not of type int",
	} {
		require.NoError(t, r.Component().(item.RawOpener).OpenRaw(t.Context(), meta, item.RawText{Text: text, Offset: 9}))
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		if want != "" {
			require.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, meta, items.Meta(0))
		require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
	}
}

func TestPathsInTheConfigurationMustBePaths(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]*readerConfig{
		`items: "a[0]" has an index: only keys are allowed here`: {Items: "a[0]"},
		`items: "a..b" is not a path: a key is empty`:            {Items: "a..b"},
		`explode: "a[x" is not a path`:                           {Explode: "a[\"x"},
	} {
		err := cfg.Validate()
		require.Error(t, err)
		if !strings.HasPrefix(want, "explode") {
			require.ErrorContains(t, err, want)
		}
	}
	for items, content := range map[string]string{`["a.b"].c`: `{"a.b":{"c":[{"id":1,"name":"x"}],"d":0},"e":1}`} {
		require.Equal(t, []string{"1 x 1"}, outcomes(t, readerConfig{Path: file(t, "in.json", content), Items: items}, nil))
	}
	got := outcomes(t, readerConfig{Path: file(t, "in.json", `{"a":{"b":[{"id":1}],"b":1}}`), Items: "a.b"}, nil)
	require.Contains(t, got[len(got)-1], `the key "b" is there twice`)
}
