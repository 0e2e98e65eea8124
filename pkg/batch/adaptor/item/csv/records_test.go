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
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// orderLine is an item of a file of orders: the day comes from the file, the customer from the order.
func orderLine(t require.TestingT) item.Type {
	two := 2
	schema, err := row.NewSchema(
		row.Field{Name: "record", Kind: row.String}, row.Field{Name: "day", Kind: row.DateKind, Format: "dd.MM.yyyy"}, row.Field{Name: "customer", Kind: row.String},
		row.Field{Name: "article", Kind: row.String, Nullable: true}, row.Field{Name: "amount", Kind: row.DecimalKind, Scale: &two, DecimalSeparator: ",", Nullable: true}, row.Field{Name: "note", Kind: row.String, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("line", schema)
}

func orderConfig(path string) readerConfig {
	return readerConfig{Path: path, Delimiter: ";", Header: headerExact, Records: map[string]recordType{
		"FILE":  {As: "header", Columns: map[string]int{"day": 2}},
		"ORDER": {As: "header", Of: "FILE", Columns: map[string]int{"customer": 3}},
		"LINE":  {Columns: map[string]int{"article": 2, "amount": 3}},
		"NOTE":  {Columns: map[string]int{"note": 2}},
		"SUM":   {As: "trailer", Of: "ORDER", Count: 2, CountOf: []string{"LINE"}, Sums: map[string]int{"amount": 3}},
		"END":   {As: "trailer", Count: 2, Sums: map[string]int{"amount": 3}},
	}}
}

const ordersFile = "FILE;20.11.2026\r\n" +
	"ORDER;1;\"Miller; Sons\r\nand \"\"Co\"\"\"\r\n" +
	"LINE;pen;12,50\r\n" +
	"\r\n" +
	"LINE;ink;-0,05\r\n" +
	"NOTE;\"be\r\nquick\"\r\n" +
	"SUM;2;12,45\r\n" +
	"ORDER;2;Ada\r\n" +
	"LINE;;7\r\n" +
	"SUM;1;7,00\r\n" +
	"END;4;19,45\r\n"

func recordsReaderOf(t testing.TB, path string) item.Reader {
	t.Helper()
	r, err := newReader(orderConfig(path), orderLine(t))
	require.NoError(t, err)
	return r
}

func ordersOf(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.csv")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func outcomesOf(t require.TestingT, r item.Reader, at item.Position) (all []string, positions []item.Position, end error) {
	ctx := context.Background()
	require.NoError(t, r.Component().(item.Opener).Open(ctx, at))
	for {
		items := r.NewItems(1)
		err := r.Fill(ctx, items, 1)
		switch {
		case err == nil:
			all = append(all, fmt.Sprintf("%q", items.At(0).(item.Row).Values()))
		case item.IsConsumed(err):
			all = append(all, "!"+err.Error())
		default:
			require.NoError(t, r.Component().(item.Closer).Close(ctx))
			return all, positions, err
		}
		pos, err := r.Component().(item.Positioner).Position()
		require.NoError(t, err)
		positions = append(positions, pos)
	}
}

func TestDetailsOfDelimitedRecordsHaveTheValuesOfTheirHeaders(t *testing.T) {
	t.Parallel()
	all, _, end := outcomesOf(t, recordsReaderOf(t, ordersOf(t, ordersFile)), nil)
	require.ErrorIs(t, end, io.EOF)
	require.Len(t, all, 4)
	for i, want := range []string{`"12.50"`, `"-0.05"`, `quick"`, `"7.00"`} {
		require.Contains(t, all[i], `"2026-11-20"`)
		require.Contains(t, all[i], want)
		require.Contains(t, all[i], []string{"Miller; Sons", "Miller; Sons", "and \\\"Co\\\"", "Ada"}[i])
	}
}

func TestDelimitedRecordTypesKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"right": ordersFile, "bad": strings.Replace(strings.Replace(ordersFile, "LINE;;7", "LINE;\xff;7", 1), "LINE;ink;-0,05", "LINE;ink;-0,05;more", 1), "CR": strings.ReplaceAll(ordersFile, "\r\n", "\r"),
	} {
		t.Run(name, func(t *testing.T) {
			path := ordersOf(t, content)
			itemtest.Reader(t, itemtest.ReaderConfig{Source: path, Joins: true, New: func(t testing.TB) item.Reader { return recordsReaderOf(t, path) }})
		})
	}
}

func TestADelimitedTrailerThatDoesNotAgreeFailsBeforeTheLastItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, new, want string
		items          int
	}{
		{"END;4;19,45", "END;4;19,46", "in.csv:13: the trailer END says that the total of amount is 19.46, but the records have 19.45: the file is incomplete", 3},
		{"END;4;19,45", "END;5;19,45", "in.csv:13: the trailer END says 5 records, but the file has 4", 3},
		{"END;4;19,45\r\n", "", "the file has no trailer END after 4 records", 3},
		{"SUM;2;12,45", "SUM;3;12,45", "in.csv:9: the trailer SUM says 3 records, but the part after the header ORDER of line 2 has 2", 2},
		{"SUM;1;7,00\r\n", "", "has no trailer SUM after 1 records", 3},
		{"SUM;1;7,00", "SUM;1", "in.csv:12: the record has 2 fields, not 3 like others of the type SUM", 3},
		{"SUM;2;12,45", "SUM;2;", "in.csv:9: the trailer SUM has no sum of amount in field 3: it is empty", 2},
		{"FILE;20.11.2026", "FILE;2026", "in.csv:1: character 6: field day", 0},
		{"LINE;ink;-0,05", "Line;ink;-0,05", "in.csv:9: the trailer SUM says 2 records, but the part after the header ORDER of line 2 has 1", 2},
	} {
		require.Contains(t, ordersFile, c.old)
		all, _, end := outcomesOf(t, recordsReaderOf(t, ordersOf(t, strings.Replace(ordersFile, c.old, c.new, 1))), nil)
		require.ErrorContains(t, end, c.want)
		require.Len(t, all, c.items, "%v", all)
	}
	all, _, _ := outcomesOf(t, recordsReaderOf(t, ordersOf(t, strings.Replace(ordersFile, "LINE;ink;", "Line;ink;", 1))), nil)
	require.Contains(t, all[1], `in.csv:6: the record is of the type "Line", but records has END, FILE, LINE, NOTE, ORDER, SUM; "*": {as: ignore} skips all others`)
}

func TestADelimitedDetailIsRedrivenWithItsHeaders(t *testing.T) {
	t.Parallel()
	path := ordersOf(t, strings.Replace(ordersFile, "LINE;ink;-0,05", "LINE;ink;-0,0x", 1))
	r := recordsReaderOf(t, path)
	c := r.Component().(*recordsReader)
	require.NoError(t, c.Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(1), 1))
	require.ErrorContains(t, r.Fill(t.Context(), r.NewItems(1), 1), "in.csv:6: character 10: field amount")
	raw := c.RawText()
	require.NoError(t, c.Close(t.Context()))
	require.Equal(t, "LINE;ink;-0,0x", raw.Text)
	require.Len(t, raw.Heads, 2)
	raw.Text = "LINE;ink;-0,07"
	require.NoError(t, c.OpenRaw(t.Context(), item.Meta{Path: "gone.csv", Line: 6}, raw))
	items := r.NewItems(1)
	require.NoError(t, r.Fill(t.Context(), items, 1))
	require.Equal(t, "LINE", items.At(0).(item.Row).At(0).Str())
	require.Equal(t, "Miller; Sons\r\nand \"Co\"", strings.ReplaceAll(strings.ReplaceAll(items.At(0).(item.Row).At(2).Str(), "\r\n", "\n"), "\n", "\r\n"))
	require.Equal(t, "-0.07", items.At(0).(item.Row).At(4).String())
	require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
	raw.Text = "END;4;19,45"
	require.NoError(t, c.OpenRaw(t.Context(), item.Meta{Path: "gone.csv", Line: 6}, raw))
	require.ErrorContains(t, r.Fill(t.Context(), r.NewItems(1), 1), "gone.csv:6: the record is a trailer, not an item")
}

func TestRandomDelimitedRecordsAreReadAsTheyWereMade(t *testing.T) {
	t.Parallel()
	path := ordersOf(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		content, amounts := randomOrders(rt)
		require.NoError(rt, os.WriteFile(path, []byte(content), 0o600))
		read := func(at item.Position) ([]string, []item.Position) {
			all, positions, end := outcomesOf(rt, recordsReaderOf(t, path), at)
			require.True(rt, errors.Is(end, io.EOF), "%v in %s", end, content)
			return all, positions
		}
		whole, positions := read(nil)
		require.Len(rt, whole, len(amounts), content)
		for i, want := range amounts {
			require.Contains(rt, whole[i], want)
		}
		for i, at := range positions {
			rest, _ := read(at)
			require.Equal(rt, len(whole[i+1:]), len(rest))
			for k := range rest {
				require.Equal(rt, whole[i+1+k], rest[k])
			}
		}
	})
}

func randomOrders(t *rapid.T) (content string, amounts []string) {
	var b strings.Builder
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+end, args...) }
	money := func(cents int64) string {
		d, err := row.NewDecimal(cents, 2)
		require.NoError(t, err)
		return d.String()
	}
	written := func(cents int64) string { return strings.Replace(money(cents), ".", ",", 1) }
	line("FILE;20.11.2026")
	total, records := int64(0), 0
	for n := range rapid.IntRange(0, 4).Draw(t, "orders") {
		line(`ORDER;%d;"%s"`, n, rapid.StringMatching(`[a-c;ß\n]{0,9}`).Draw(t, "customer"))
		sum, count := int64(0), rapid.IntRange(0, 5).Draw(t, "lines")
		for range count {
			cents := rapid.Int64Range(-999999, 999999).Draw(t, "cents")
			line("LINE;%s;%s", rapid.StringMatching(`[a-cß ]{0,5}`).Draw(t, "article"), written(cents))
			amounts = append(amounts, money(cents))
			sum += cents
		}
		if rapid.Bool().Draw(t, "note") {
			line(`NOTE;"x` + end + `y"`)
			amounts = append(amounts, "NOTE")
			records++
		}
		line("SUM;%d;%s", count, written(sum))
		total, records = total+sum, records+count
	}
	line("END;%d;%s", records, written(total))
	return b.String(), amounts
}

func TestDelimitedRecordTypesAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(map[string]recordType){
		"records.LINE.columns.amont: the item has no field amont (did you mean amount?)": func(r map[string]recordType) { r["LINE"].Columns["amont"] = 4 },
		"records.LINE.columns.note: 0 is not the number of a field, from 1":              func(r map[string]recordType) { r["LINE"].Columns["note"] = 0 },
		"records.SUM.sums.note: the field is a string; exact sums need int or":           func(r map[string]recordType) { r["SUM"].Sums["note"] = 4 },
		"records.LINE: columns: the field customer of the item has no column":            func(r map[string]recordType) { delete(r, "ORDER"); delete(r, "SUM") },
		"records.SUM.of: ORDER is not a header of this file (as: header)":                func(r map[string]recordType) { delete(r, "ORDER") },
		"records.NOTE.fields: it is negative":                                            func(r map[string]recordType) { r["NOTE"] = recordType{Columns: map[string]int{"note": 2}, Fields: -1} },
	} {
		cfg := orderConfig("in.csv")
		change(cfg.Records)
		_, err := newReader(cfg, orderLine(t))
		require.ErrorContains(t, err, want)
	}
	cfg := orderConfig("in.csv")
	_, err := newReader(cfg, nil)
	require.ErrorContains(t, err, "item: the item type is missing: a file with several record types has no header")
	cfg.Columns, cfg.Header = 3, headerNone
	_, err = newReader(cfg, orderLine(t))
	require.ErrorContains(t, err, "columns: each record type has its own fields")
	cfg.Columns, cfg.Records, cfg.TypeAt = 0, nil, 2
	_, err = newReader(cfg, orderLine(t))
	require.ErrorContains(t, err, "type_at: it is a field's number")
}

// Rule D11b.
func TestNullsOfDelimitedRecordsGoByTheirQuotes(t *testing.T) {
	t.Parallel()
	schema, err := row.NewSchema(row.Field{Name: "a", Kind: row.String, Nullable: true}, row.Field{Name: "b", Kind: row.String, Nullable: true}, row.Field{Name: "x", Kind: row.String, Nullable: true})
	require.NoError(t, err)
	cfg := readerConfig{Path: ordersOf(t, "H,,\"\"\n\nD,\nD,\"\"\n"), Records: map[string]recordType{
		"H": {As: "header", Columns: map[string]int{"a": 2, "b": 3}}, "D": {Columns: map[string]int{"x": 2}},
	}}
	open := func() item.Reader {
		r, err := newReader(cfg, item.RowOf("nulls", schema))
		require.NoError(t, err)
		return r
	}
	show := func(items item.Items) (kinds []row.Kind) {
		for _, v := range items.At(0).(item.Row).Values() {
			kinds = append(kinds, v.Kind())
		}
		return kinds
	}
	first := open()
	require.NoError(t, first.Component().(item.Opener).Open(t.Context(), nil))
	items := first.NewItems(1)
	require.NoError(t, first.Fill(t.Context(), items, 1))
	require.Equal(t, []row.Kind{row.Null, row.String, row.Null}, show(items))
	at, err := first.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.NoError(t, first.Component().(item.Closer).Close(t.Context()))
	again := open()
	require.NoError(t, again.Component().(item.Opener).Open(t.Context(), at))
	items = again.NewItems(1)
	require.NoError(t, again.Fill(t.Context(), items, 1))
	require.Equal(t, []row.Kind{row.Null, row.String, row.String}, show(items))
	require.NoError(t, again.Component().(item.Closer).Close(t.Context()))
}
