package text

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func transfer(t require.TestingT) item.Type {
	two := 2
	schema, err := row.NewSchema(
		row.Field{Name: "bank", Kind: row.Int}, row.Field{Name: "amount", Kind: row.DecimalKind, Scale: &two, Nullable: true}, row.Field{Name: "rate", Kind: row.DecimalKind, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("transfer", schema)
}

func transfers(t require.TestingT, rows ...[3]string) []item.Row {
	schema := transfer(t).Schema()
	var list []item.Row
	for _, texts := range rows {
		values := make([]row.Value, schema.Len())
		for i, text := range texts {
			var err error
			values[i], err = schema.Field(i).Parse(text)
			require.NoError(t, err)
		}
		list = append(list, row.New(schema, values))
	}
	return list
}

func transferColumns() map[string]columnConfig {
	two := 2
	return map[string]columnConfig{"bank": {At: "2-4"}, "amount": {At: "5-10", Pad: "0", Decimals: &two}, "rate": {At: "11-16"}}
}

func transferTrailer() *trailerConfig {
	return &trailerConfig{Begins: "T", Count: "2-4", Sums: map[string]string{"amount": "6-14", "bank": "15-20", "rate": "21-27"}}
}

func TestSumsAndImpliedPointsKeepTheContract(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "out.txt")
	write := func(t testing.TB, attempt core.Attempt) item.Writer {
		w, err := newFixedWriter(fixedWriterConfig{Path: path, Columns: transferColumns(), Record: "D", Trailer: transferTrailer()}, itemtest.Use(transfer(t), attempt))
		require.NoError(t, err)
		return w
	}
	want := "D 10000150  1.50\nD-20-00005      \nD 30      2.2500\nD  1999999 -0.75\nT004 00100014400002103.0000\n"
	itemtest.Writer(t, itemtest.WriterConfig{
		New: func(t testing.TB) item.Writer { return write(t, core.Attempt{Exclusive: true}) }, NewFor: write, Hidden: true, Want: want,
		Chunks: func(t testing.TB) []item.Items {
			return itemtest.Chunks(transfers(t, [3]string{"10", "1.5", "1.50"}), transfers(t, [3]string{"-20", "-0.05", ""}, [3]string{"30", "", "2.2500"}), transfers(t, [3]string{"1", "9999.99", "-0.75"}))
		},
		Contents: func(t testing.TB) string {
			content, err := os.ReadFile(path)
			if !os.IsNotExist(err) {
				require.NoError(t, err)
			}
			return string(content)
		},
		Clear: func(t testing.TB) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) },
		Lose:  func(t testing.TB) { itemkit.RemoveParts(t, path) },
	})
	in := fileOf(t, want)
	reader := func(t testing.TB, path string) item.Reader {
		r, err := newFixedReader(fixedReaderConfig{Path: path, Columns: transferColumns(), Record: "D", Trailer: transferTrailer()}, transfer(t))
		require.NoError(t, err)
		return r
	}
	itemtest.Reader(t, itemtest.ReaderConfig{Source: in, New: func(t testing.TB) item.Reader { return reader(t, in) }})
	for problem, changed := range map[string]string{
		"the trailer says that the total of amount is 10001.44, but the records have 10001.45": strings.Replace(want, "-00005", "-00004", 1),
		"the trailer says that the total of bank is 21, but the records have 22":               strings.Replace(want, "D  1", "D  2", 1),
		"the sum of amount cannot be checked: it is unreadable in 1 records":                   strings.Replace(want, "000150", "0001.5", 1),
		"the trailer has no sum of rate at 21-27":                                              strings.Replace(want, "03.0000", "", 1),
	} {
		_, end := outcomes(t, reader(t, fileOf(t, changed)))
		require.ErrorContains(t, end, problem)
	}
	all, _ := outcomes(t, reader(t, fileOf(t, strings.Replace(want, "000150", "0001.5", 1))))
	require.Contains(t, all[0], "is not a number with an implied point")
}

func TestSumsAreChecked(t *testing.T) {
	t.Parallel()
	one := 1
	for want, change := range map[string]func(*fixedWriterConfig){
		"trailer.sums.amont: the records have no such column":      func(c *fixedWriterConfig) { c.Trailer.Sums["amont"] = "30-40" },
		"trailer.sums.amount: it is at 3-9, which overlaps count":  func(c *fixedWriterConfig) { c.Trailer.Sums["amount"] = "3-9" },
		"trailer.sums.bank: it is at 10-15, which overlaps amount": func(c *fixedWriterConfig) { c.Trailer.Sums["bank"] = "10-15" },
		"trailer.sums.amount: it begins at 1, inside \"T\"":        func(c *fixedWriterConfig) { c.Trailer.Sums["amount"] = "1-9" },
		`trailer.sums.amount: "x" is not FIRST-LAST`:               func(c *fixedWriterConfig) { c.Trailer.Sums["amount"] = "x" },
		"columns.bank: decimals: an implied point needs a decimal": func(c *fixedWriterConfig) { c.Columns["bank"] = columnConfig{At: "2-4", Decimals: &one} },
	} {
		cfg := fixedWriterConfig{Path: "out.txt", Columns: transferColumns(), Record: "D", Trailer: transferTrailer()}
		change(&cfg)
		_, err := newFixedWriter(cfg, registry.BuildContext{In: transfer(t)})
		require.ErrorContains(t, err, want)
	}
	w, err := newFixedWriter(fixedWriterConfig{Path: filepath.Join(t.TempDir(), "out.txt"), Columns: transferColumns(), Trailer: &trailerConfig{Begins: "T", Sums: map[string]string{"amount": "2-4"}}}, itemtest.Use(transfer(t), core.Attempt{Exclusive: true}))
	require.NoError(t, err)
	require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, w.Write(t.Context(), itemtest.Chunks(transfers(t, [3]string{"1", "10.00", ""}))[0]))
	require.ErrorContains(t, w.Component().(item.Finisher).Finish(t.Context()), "the sum of amount: field amount: 4 characters, but its column has 3")
	require.NoError(t, w.Component().(item.Closer).Close(t.Context()))
}
