package text

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func writtenTypes() map[string]recordType {
	kinds := batches()
	delete(kinds, "#")
	return kinds
}

func entries(t require.TestingT, list ...[3]string) (rows []item.Row) {
	schema := entry(t).Schema()
	for _, e := range list {
		values := []row.Value{row.StringValue("D"), row.DateValue(row.NewDate(2026, 11, 20)), row.StringValue(e[0]), {}, {}, {}}
		var err error
		values[3], err = schema.Field(3).Parse(e[1])
		require.NoError(t, err)
		if e[2] == "" {
			values[0], values[5] = row.StringValue("DX"), row.StringValue("late")
		} else {
			values[4], err = schema.Field(4).Parse(e[2])
			require.NoError(t, err)
		}
		rows = append(rows, row.New(schema, values))
	}
	return rows
}

func TestAWriterOfRecordTypesKeepsTheContract(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "out.txt")
	write := func(t testing.TB, attempt core.Attempt) item.Writer {
		w, err := newFixedWriter(fixedWriterConfig{Path: path, Records: writtenTypes()}, itemtest.Use(entry(t), attempt))
		require.NoError(t, err)
		return w
	}
	itemtest.Writer(t, itemtest.WriterConfig{
		New: func(t testing.TB) item.Writer { return write(t, core.Attempt{Exclusive: true}) }, NewFor: write, Hidden: true,
		Want: "F20261120\nBACME  \nD0007  1250\nD0008    -5\nDX   8late  \nE00300001245\nBZoë   \nD0009    10\nE00100000010\nBACME  \nD0001     1\nE00100000001\nZ01300001256\n",
		Chunks: func(t testing.TB) []item.Items {
			all := entries(t, [3]string{"ACME", "7", "12.50"}, [3]string{"ACME", "8", "-0.05"}, [3]string{"ACME", "8", ""}, [3]string{"Zoë", "9", "0.10"}, [3]string{"ACME", "1", "0.01"})
			return itemtest.Chunks(all[:2], all[2:4], all[4:])
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
}

func TestRecordTypesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(dir, "out.dat")
		length := rapid.SampledFrom([]int{0, 16}).Draw(rt, "length")
		encoding := rapid.SampledFrom([]filestream.EncodingName{"", "ibm1047", "latin1"}).Draw(rt, "encoding")
		kinds := writtenTypes()
		if length > 0 { // as mainframes have it
			two := 2
			kinds["D"] = recordType{Columns: map[string]columnConfig{"account": {At: "2-4", Format: "packed"}, "amount": {At: "5-8", Format: "packed", Decimals: &two}}}
			kinds["E"].Sums["amount"] = columnConfig{At: "5-12", Format: "zoned"}
		}
		rows := randomEntries(rt)
		ctx := context.Background()
		use := registry.BuildContext{In: entry(rt)}
		writer := func() item.Writer {
			w, err := newFixedWriter(fixedWriterConfig{Path: path, Records: kinds, Length: length, Encoding: encoding}, use)
			require.NoError(rt, err)
			return w
		}
		w := writer()
		require.NoError(rt, w.Component().(item.Opener).Open(ctx, nil))
		for rest := rows; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
			require.NoError(rt, w.Write(ctx, itemtest.Chunks(rest[:n])[0]))
			rest = rest[n:]
			require.NoError(rt, w.Component().(item.Preparer).Prepare(ctx))
			at, err := w.Component().(item.Positioner).Position()
			require.NoError(rt, err)
			require.NoError(rt, w.Component().(item.Releaser).Release(ctx))
			if rapid.Bool().Draw(rt, "rewind") { // as after a chunk that was rolled back
				if len(rest) > 0 {
					require.NoError(rt, w.Write(ctx, itemtest.Chunks(rest)[0]))
				}
				require.NoError(rt, w.Component().(item.Rewinder).Rewind(ctx, at))
			}
		}
		require.NoError(rt, w.Component().(item.Releaser).Release(ctx))
		require.NoError(rt, w.Component().(item.Finisher).Finish(ctx))
		require.NoError(rt, w.Component().(item.Closer).Close(ctx))
		r, err := newFixedReader(fixedReaderConfig{Path: path, Records: kinds, Length: length, Encoding: encoding}, entry(rt))
		require.NoError(rt, err)
		all, end := outcomes(t, r)
		require.ErrorIs(rt, end, io.EOF)
		var want []string
		for _, one := range rows {
			want = append(want, texts(one))
		}
		require.Equal(rt, want, all)
	})
}

func randomEntries(t *rapid.T) []item.Row {
	var list [][3]string
	for n := range rapid.IntRange(0, 3).Draw(t, "batches") {
		for range rapid.IntRange(1, 4).Draw(t, "items") {
			amount := ""
			if rapid.Bool().Draw(t, "has amount") {
				d, err := row.NewDecimal(rapid.Int64Range(-99999, 999999).Draw(t, "cents"), 2)
				require.NoError(t, err)
				amount = d.String()
			}
			list = append(list, [3]string{fmt.Sprintf("Cß%d", n), fmt.Sprint(rapid.IntRange(0, 9999).Draw(t, "account")), amount})
		}
	}
	return entries(t, list...)
}

func TestAnInvalidItemLeavesRecordTypesAsTheyWere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.txt")
	w, err := newFixedWriter(fixedWriterConfig{Path: path, Records: writtenTypes()}, itemtest.Use(entry(t), core.Attempt{Exclusive: true}))
	require.NoError(t, err)
	c := w.Component().(*writer)
	require.NoError(t, c.Open(t.Context(), nil))
	for want, bad := range map[string][3]string{
		"field amount: 7 characters, but its column has 6":                {"ACME", "7", "12345.67"},
		"the header B: field company: 7 characters, but its column has 6": {"TOOLONG", "7", "1"},
	} {
		err := w.Write(t.Context(), itemtest.Chunks(entries(t, [3]string{"ACME", "1", "1.00"}, bad))[0])
		require.ErrorContains(t, err, want)
	}
	other := entries(t, [3]string{"ACME", "1", "1.00"})
	values := append([]row.Value{}, other[0].Values()...)
	values[0] = row.StringValue("E")
	err = w.Write(t.Context(), itemtest.Chunks([]item.Row{row.New(other[0].Schema(), values)})[0])
	require.ErrorContains(t, err, `field record: "E" is not a type of details (records has B, D, DX, E, F, Z)`)
	require.NoError(t, w.Write(t.Context(), itemtest.Chunks(other)[0]))
	require.NoError(t, c.Release(t.Context()))
	require.NoError(t, c.Finish(t.Context()))
	require.NoError(t, c.Close(t.Context()))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "F20261120\nBACME  \nD0001   100\nE00100000100\nZ00500000100\n", string(content))
}

func TestTheRecordTypesOfAWriterAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*fixedWriterConfig){
		"records.*: the writer writes no such record: omit it":            func(c *fixedWriterConfig) { c.Records["*"] = recordType{As: "ignore"} },
		"records.#: the writer writes no such record":                     func(c *fixedWriterConfig) { c.Records["#"] = recordType{As: "ignore"} },
		"trailer: a trailer is a type of records":                         func(c *fixedWriterConfig) { c.Trailer = &trailerConfig{Begins: "T"} },
		"columns: the positions of the fields are missing":                func(c *fixedWriterConfig) { c.Records = nil },
		"records.E.of: X is not a header of this file":                    func(c *fixedWriterConfig) { c.Records["E"] = recordType{As: "trailer", Of: "X"} },
		"records: there are 2 types of details, but no field selects one": func(c *fixedWriterConfig) { c.Records["D"].Columns["record"] = columnConfig{At: "20-21"} },
		"records.DX: type_at: the name is longer than its column 12":      func(c *fixedWriterConfig) { c.TypeAt = "12" },
		"records.D: columns.account: it begins at 2, inside its name":     func(c *fixedWriterConfig) { c.TypeAt = "1-2" },
		"records.E: count: it begins at 1, inside its name":               func(c *fixedWriterConfig) { c.Records["E"] = recordType{As: "trailer", Of: "B", Count: "1-4"} },
		"records.E: sums.amount: it begins at 5, inside count": func(c *fixedWriterConfig) {
			c.Records["E"] = recordType{As: "trailer", Of: "B", Count: "2-5", Sums: map[string]columnConfig{"amount": {At: "5-9"}}}
		},
	} {
		cfg := fixedWriterConfig{Path: "out.txt", Records: writtenTypes()}
		change(&cfg)
		_, err := newFixedWriter(cfg, registry.BuildContext{In: entry(t)})
		require.ErrorContains(t, err, want)
	}
}
