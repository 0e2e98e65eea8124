package text

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

func one(t require.TestingT, f row.Field) item.Type {
	f.Name = "x"
	schema, err := row.NewSchema(f)
	require.NoError(t, err)
	return item.RowOf("one", schema)
}

func readOne(t testing.TB, content string, encoding filestream.EncodingName, c columnConfig, f row.Field) string {
	c.At = "1-" + strconv.Itoa(len(content))
	cfg := fixedReaderConfig{Path: fileOf(t, content), Columns: map[string]columnConfig{"x": c}, Length: len(content), Encoding: encoding}
	r, err := newFixedReader(cfg, one(t, f))
	require.NoError(t, err)
	all, end := outcomes(t, r)
	require.ErrorIs(t, end, io.EOF)
	require.Len(t, all, 1)
	return all[0]
}

func writeOne(t testing.TB, v row.Value, size int, encoding filestream.EncodingName, c columnConfig, f row.Field) (string, error) {
	c.At = "1-" + strconv.Itoa(size)
	path := filepath.Join(t.TempDir(), "out.dat")
	of := one(t, f)
	w, err := newFixedWriter(fixedWriterConfig{Path: path, Columns: map[string]columnConfig{"x": c}, Length: size, Encoding: encoding}, itemtest.Use(of, core.Attempt{Exclusive: true}))
	require.NoError(t, err)
	require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
	err = w.Write(t.Context(), itemtest.Chunks([]item.Row{row.New(of.Schema(), []row.Value{v})})[0])
	if err == nil {
		require.NoError(t, w.Component().(item.Releaser).Release(t.Context()))
		require.NoError(t, w.Component().(item.Finisher).Finish(t.Context()))
	}
	require.NoError(t, w.Component().(item.Closer).Close(t.Context()))
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content), nil
}

func TestNumbersOfMainframesAreExact(t *testing.T) {
	t.Parallel()
	two, none := 2, 0
	zoned, packed, binary := columnConfig{Format: "zoned", Decimals: &two}, columnConfig{Format: "packed", Decimals: &two}, columnConfig{Format: "binary", Decimals: &two}
	with := func(c columnConfig, sign string) columnConfig { c.Sign = sign; return c }
	whole := func(c columnConfig) columnConfig { c.Decimals = &none; return c }
	const cp = "ibm037"
	for _, c := range []struct {
		bytes    string
		encoding filestream.EncodingName
		column   columnConfig
		want     string
		again    string // the text written for the value; "" means the same bytes
	}{
		{"0001250{", "", zoned, "125.00", ""}, {"0000125}", "", zoned, "-12.50", ""}, {"0000123N", "", zoned, "-12.35", ""}, {"0000123E", "", zoned, "12.35", ""},
		{"00001235", "", zoned, "12.35", "0000123E"}, {"0000123u", "", zoned, "-12.35", "0000123N"}, {"0}", "", zoned, "0.00", "0{"},
		{"N000123", "", with(zoned, "leading"), "-50001.23", ""}, {"000123-", "", with(zoned, "trailing_separate"), "-1.23", ""}, {"+000123", "", with(zoned, "leading_separate"), "1.23", ""},
		{"000123", "", with(zoned, "none"), "1.23", ""},
		{"\xF0\xF1\xF2\xC5", cp, zoned, "1.25", ""}, {"\xF0\xF1\xF2\xD5", cp, zoned, "-1.25", ""}, {"\xF0\xF1\xF2\xF5", cp, zoned, "1.25", "\xF0\xF1\xF2\xC5"}, {"\xF0\xF1\xF2\xB5", cp, zoned, "-1.25", "\xF0\xF1\xF2\xD5"},
		{"\xF0\xF1\xF2\x60", cp, with(zoned, "trailing_separate"), "-0.12", ""}, {"\xF0\xF1\xF2\xF5", cp, with(zoned, "none"), "1.25", ""},
		{"\x01\x23\x4C", "", packed, "12.34", ""}, {"\x01\x23\x4D", cp, packed, "-12.34", ""}, {"\x01\x23\x4F", "", packed, "12.34", "\x01\x23\x4C"}, {"\x01\x23\x4F", "", with(packed, "none"), "12.34", ""},
		{"\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x9D", "", whole(packed), "-" + strings.Repeat("9", 31), ""},
		{"\x00\x00\x04\xD2", "", binary, "12.34", ""}, {"\xFF\xFF\xFB\x2E", cp, binary, "-12.34", ""}, {"\xFF\xFF", "", with(binary, "none"), "655.35", ""},
		{"\x80\x00\x00\x00\x00\x00\x00\x00", "", whole(binary), "-9223372036854775808", ""}, {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "", with(whole(binary), "none"), "18446744073709551615", ""},
		{"\x25\x0A\x0D\x15", "", whole(binary), "621415701", ""}, {"    ", "", zoned, "null", ""}, {"\x40\x40", cp, packed, "null", ""}, {"\x00\x00", cp, packed, "null", "\x40\x40"},
	} {
		f := row.Field{Kind: row.DecimalKind, Nullable: true}
		require.Equal(t, c.want, readOne(t, c.bytes, c.encoding, c.column, f), "%X", c.bytes)
		v := row.Value{}
		if c.want != "null" {
			d, err := row.ParseDecimal(c.want)
			require.NoError(t, err)
			v = row.DecimalValue(d)
		}
		got, err := writeOne(t, v, len(c.bytes), c.encoding, c.column, f)
		require.NoError(t, err)
		if c.again == "" {
			c.again = c.bytes
		}
		require.Equal(t, fmt.Sprintf("%X", c.again), fmt.Sprintf("%X", got), "%s", c.want)
	}
}

func TestANumberThatIsNoneNamesRecordAndField(t *testing.T) {
	t.Parallel()
	two := 2
	for _, c := range []struct {
		bytes              string
		encoding           filestream.EncodingName
		format, sign, want string
	}{
		{"00012X", "", "zoned", "", `bytes 1-6: field x: 3030303132`},
		{"0A0123", "", "zoned", "", "is not a zoned number: position 2 is not a digit"},
		{"00 123", "", "zoned", "", "position 3 is not a digit"},
		{"      ", "", "zoned", "none", "position 1 is not a digit"},
		{"000123", "", "zoned", "trailing_separate", "there is no + or - next to its digits"},
		{"00012C", "ibm037", "zoned", "", "position 1 is not a digit"},
		{"\xF1\xC2\xF3", "ibm037", "zoned", "", "F1C2F3 is not a zoned number: position 2 is not a digit"},
		{"\x12\x34", "", "packed", "", "1234 is not a packed number: 4 is not a sign"},
		{"\x1A\x3C", "", "packed", "", "the second half of byte 1 is not a digit"},
		{"\xA1\x3C", "", "packed", "", "the first half of byte 1 is not a digit"},
		{"\x01\x3D", "", "packed", "none", "it is negative, but the column has no sign"},
		{"\x40\x40", "ibm037", "packed", "", "0 is not a sign"},
	} {
		got := readOne(t, c.bytes, c.encoding, columnConfig{Format: c.format, Sign: c.sign, Decimals: &two}, row.Field{Kind: row.DecimalKind})
		require.Contains(t, got, "in.txt:1: bytes 1-", c.bytes)
		require.Contains(t, got, c.want)
	}
	require.Contains(t, readOne(t, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "", columnConfig{Format: "binary", Sign: "none"}, row.Field{Kind: row.Int}), "is too large for an int")
	number := func(text string) row.Value {
		d, err := row.ParseDecimal(text)
		require.NoError(t, err)
		return row.DecimalValue(d)
	}
	for _, c := range []struct {
		v            row.Value
		size         int
		format, sign string
		want         string
	}{
		{number("12345.67"), 6, "zoned", "", "12345.67 has 7 digits, but its column has room for 6 (at 1-6)"},
		{number("12345.6"), 6, "zoned", "leading_separate", "has 7 digits, but its column has room for 5"},
		{number("10.00"), 2, "packed", "", "has room for 3"},
		{number("1.001"), 4, "packed", "", "has more digits after the point than its column"},
		{number("-1"), 4, "packed", "none", "is negative, but the column has no sign"},
		{number("327.68"), 2, "binary", "", "is too large for 2 bytes"},
		{number("-327.69"), 2, "binary", "", "is too large for 2 bytes"},
		{row.Value{}, 2, "binary", "", "a binary number cannot be null"},
	} {
		_, err := writeOne(t, c.v, c.size, "", columnConfig{Format: c.format, Sign: c.sign, Decimals: &two}, row.Field{Kind: row.DecimalKind, Nullable: true})
		require.ErrorContains(t, err, c.want)
	}
	minusOne := row.Field{Kind: row.Int, Nullable: true, Nulls: []string{"-1"}}
	got, err := writeOne(t, row.Value{}, 2, "", columnConfig{Format: "binary"}, minusOne)
	require.NoError(t, err)
	require.Equal(t, "\xFF\xFF", got)
	require.Equal(t, "null", readOne(t, got, "", columnConfig{Format: "binary"}, minusOne))
}

func account(t require.TestingT) item.Type {
	two := 2
	schema, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "city", Kind: row.String, Nullable: true, Nulls: []string{""}},
		row.Field{Name: "zoned", Kind: row.DecimalKind, Scale: &two, Nullable: true}, row.Field{Name: "packed", Kind: row.DecimalKind, Scale: &two, Nullable: true},
		row.Field{Name: "binary", Kind: row.Int}, row.Field{Name: "on", Kind: row.DateKind, Format: "yyyyMMdd", Nullable: true}, row.Field{Name: "points", Kind: row.Int, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("account", schema)
}

func accountColumns() map[string]columnConfig {
	two := 2
	return map[string]columnConfig{
		"id": {At: "2-6", Pad: "0"}, "name": {At: "7-16"}, "city": {At: "19-24", Overflow: "cut"}, "zoned": {At: "25-32", Format: "zoned", Decimals: &two},
		"packed": {At: "33-37", Format: "packed", Decimals: &two}, "binary": {At: "38-41", Format: "binary"}, "on": {At: "42-49"}, "points": {At: "50-53", Format: "packed", Sign: "none"},
	}
}

func accountTrailer() *trailerConfig {
	return &trailerConfig{Begins: "T", Count: "2-8", Sums: map[string]string{"packed": "9-16", "zoned": "17-28"}}
}

func accountReader(path string, encoding filestream.EncodingName) fixedReaderConfig {
	return fixedReaderConfig{Path: path, Columns: accountColumns(), Record: "D", Header: "HÄ", Trailer: accountTrailer(), Length: 56, Encoding: encoding}
}

func accountWriter(path string, encoding filestream.EncodingName) fixedWriterConfig {
	return fixedWriterConfig{Path: path, Columns: accountColumns(), Record: "D", Header: "HÄ1", Trailer: accountTrailer(), Length: 56, Encoding: encoding}
}

func randomAccounts(t *rapid.T) []item.Row {
	schema := account(t).Schema()
	text := rapid.StringMatching(`([A-Zäß0\n -]{0,9}[A-Zäß0-])?`)
	decimal := func(most int64, name string) row.Value {
		if rapid.IntRange(0, 5).Draw(t, name+" null") == 0 {
			return row.Value{}
		}
		d, err := row.NewDecimal(rapid.Int64Range(-most, most).Draw(t, name), 2)
		require.NoError(t, err)
		return row.DecimalValue(d)
	}
	var rows []item.Row
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		values := []row.Value{
			row.IntValue(rapid.Int64Range(-9999, 99999).Draw(t, "id")), row.StringValue(text.Draw(t, "name")), row.StringValue("Köln"),
			decimal(99_999_999, "zoned"), decimal(999_999_999, "packed"), row.IntValue(rapid.Int64Range(-1<<31, 1<<31-1).Draw(t, "binary")),
			row.DateValue(row.NewDate(2026, 2, rapid.IntRange(1, 28).Draw(t, "day"))), {},
		}
		if rapid.Bool().Draw(t, "points null") {
			values[7] = row.IntValue(rapid.Int64Range(0, 9_999_999).Draw(t, "points"))
		} else {
			values[2], values[6] = row.Value{}, row.Value{}
		}
		rows = append(rows, row.New(schema, values))
	}
	return rows
}

func writeRows(t require.TestingT, w item.Writer, rows []item.Row) {
	ctx := context.Background()
	require.NoError(t, w.Component().(item.Opener).Open(ctx, nil))
	require.NoError(t, w.Write(ctx, itemtest.Chunks(rows)[0]))
	require.NoError(t, w.Component().(item.Releaser).Release(ctx))
	require.NoError(t, w.Component().(item.Finisher).Finish(ctx))
	require.NoError(t, w.Component().(item.Closer).Close(ctx))
}

func TestRecordsOfBytesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		encoding := rapid.SampledFrom([]filestream.EncodingName{"ibm037", "ibm1047", "ibm1140", "latin1", "windows-1252"}).Draw(rt, "encoding")
		path := filepath.Join(dir, rapid.SampledFrom([]string{"out.dat", "out.dat.gz"}).Draw(rt, "path"))
		rows := randomAccounts(rt)
		w, err := newFixedWriter(accountWriter(path, encoding), registry.BuildContext{In: account(rt)})
		require.NoError(rt, err)
		writeRows(rt, w, rows)
		read := func() item.Reader {
			r, err := newFixedReader(accountReader(path, encoding), account(rt))
			require.NoError(rt, err)
			return r
		}
		r := read()
		require.NoError(rt, r.Component().(item.Opener).Open(context.Background(), nil))
		whole := readOn(t, r)
		require.NoError(rt, r.Component().(item.Closer).Close(context.Background()))
		var want []string
		for _, one := range rows {
			want = append(want, texts(one))
		}
		require.Equal(rt, append(want, io.EOF.Error()), whole.texts)
		for i, at := range whole.at {
			again := read()
			require.NoError(rt, again.Component().(item.Opener).Open(context.Background(), at))
			require.Equal(rt, whole.texts[i+1:], readOn(t, again).texts)
			require.NoError(rt, again.Component().(item.Closer).Close(context.Background()))
		}
	})
}

func accounts(t require.TestingT, names ...string) (rows []item.Row) {
	for i, name := range names {
		d, err := row.NewDecimal(int64(i)*1001-500, 2)
		require.NoError(t, err)
		rows = append(rows, row.New(account(t).Schema(), []row.Value{row.IntValue(int64(i)), row.StringValue(name), {}, row.DecimalValue(d), row.DecimalValue(d), row.IntValue(-int64(i)), {}, {}}))
	}
	return rows
}

func TestRecordsOfBytesKeepTheContract(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "out.dat")
	write := func(t testing.TB, attempt core.Attempt) item.Writer {
		w, err := newFixedWriter(accountWriter(path, "ibm1047"), itemtest.Use(account(t), attempt))
		require.NoError(t, err)
		return w
	}
	writeRows(t, write(t, core.Attempt{Exclusive: true}), accounts(t, "Ada", "Zoë", "Bob"))
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, want, 5*56)
	itemtest.Writer(t, itemtest.WriterConfig{
		New: func(t testing.TB) item.Writer { return write(t, core.Attempt{Exclusive: true}) }, NewFor: write, Hidden: true, Want: string(want),
		Chunks: func(t testing.TB) []item.Items {
			all := accounts(t, "Ada", "Zoë", "Bob")
			return itemtest.Chunks(all[:1], all[1:])
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
	bad := []byte(string(want))
	bad[2*56+33] = 0xAA // a packed number
	in := fileOf(t, string(bad))
	itemtest.Reader(t, itemtest.ReaderConfig{Source: in, New: func(t testing.TB) item.Reader {
		cfg := accountReader(in, "ibm1047")
		cfg.Trailer = nil
		r, err := newFixedReader(cfg, account(t))
		require.NoError(t, err)
		return r
	}})
}

func TestAFileThatEndsWithinARecordFailsBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	read := func(path string) error {
		r, err := newFixedReader(fixedReaderConfig{Path: path, Columns: map[string]columnConfig{"x": {At: "1-4"}}, Length: 4}, one(t, row.Field{Kind: row.String}))
		require.NoError(t, err)
		return r.Component().(item.Opener).Open(t.Context(), nil)
	}
	require.ErrorContains(t, read(fileOf(t, "aaaabbbbcc")), "in.txt: byte 8: the file ends within a record, which has 2 bytes instead of 4 (length)")
	require.ErrorContains(t, read(fileOf(t, "aaaa\nbbbb\n")), "a line end follows its first record: omit length")
	require.NoError(t, read(fileOf(t, "")))
}

func TestABinaryRecordIsRedrivenFromItsBytes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.dat")
	w, err := newFixedWriter(accountWriter(path, "ibm037"), itemtest.Use(account(t), core.Attempt{Exclusive: true}))
	require.NoError(t, err)
	writeRows(t, w, accounts(t, "Ada", "Zoë"))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content[2*56+33] = 0xAA
	require.NoError(t, os.WriteFile(path, content, 0o600))
	r, err := newFixedReader(accountReader(path, "ibm037"), account(t))
	require.NoError(t, err)
	c := r.Component().(interface {
		item.Opener
		item.RawReader
		item.RawOpener
		item.Closer
	})
	require.NoError(t, c.Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(1), 1))
	wrong := r.Fill(t.Context(), r.NewItems(1), 1)
	require.ErrorContains(t, wrong, "a.dat:3: bytes 33-37: field packed: 00AA00501C is not a packed number")
	raw := c.RawText()
	require.Contains(t, itemkit.Unread{Err: wrong, Raw: raw}.Fault(), "[00aa00501c]")
	require.NoError(t, c.Close(t.Context()))
	require.True(t, strings.HasPrefix(raw.Text, "hex:c4"), raw.Text)
	require.Equal(t, int64(2*56), raw.Offset)
	stored, cut, _ := raw.Bounded()
	require.False(t, cut)
	stored.Text = strings.Replace(stored.Text, "00aa00501c", "000000501c", 1)
	require.NoError(t, c.OpenRaw(t.Context(), item.Meta{Path: path, Line: 3}, stored))
	items := r.NewItems(1)
	require.NoError(t, r.Fill(t.Context(), items, 1))
	require.Equal(t, "1 Zoë null 5.01 5.01 -1 null null", texts(items.At(0)))
	require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
	stored.Text = stored.Text[:50]
	require.NoError(t, c.OpenRaw(t.Context(), item.Meta{Path: path, Line: 3}, stored))
	require.ErrorContains(t, r.Fill(t.Context(), r.NewItems(1), 1), "a.dat:3: the record has 23 bytes, not 56 (length)")
	require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
}

func TestFormatsAreChecked(t *testing.T) {
	t.Parallel()
	two := 2
	for want, change := range map[string]func(*fixedReaderConfig){
		"columns.packed: format: a packed number may contain the bytes of a line end":       func(c *fixedReaderConfig) { c.Length, c.Encoding = 0, "" },
		"encoding: utf-16 has more than one byte for a blank, but the positions of these":   func(c *fixedReaderConfig) { c.Encoding = "utf-16" },
		"columns.zoned: decimals: the file does not say how many digits a zoned number has": func(c *fixedReaderConfig) { c.Columns["zoned"] = columnConfig{At: "25-32", Format: "zoned"} },
		"columns.name: format: zoned is for int and decimal; the field is of type":          func(c *fixedReaderConfig) { c.Columns["name"] = columnConfig{At: "7-16", Format: "zoned"} },
		"columns.binary: at: a binary number has 1 to 8 bytes, not 9":                       func(c *fixedReaderConfig) { c.Columns["binary"] = columnConfig{At: "38-46", Format: "binary"} },
		"columns.packed: sign: leading needs the format zoned": func(c *fixedReaderConfig) {
			c.Columns["packed"] = columnConfig{At: "33-37", Format: "packed", Decimals: &two, Sign: "leading"}
		},
		"columns.id: sign: it needs the format zoned, packed or binary":         func(c *fixedReaderConfig) { c.Columns["id"] = columnConfig{At: "2-6", Sign: "none"} },
		"columns.points: at: it ends at 57, but a record has 56 bytes (length)": func(c *fixedReaderConfig) { c.Columns["points"] = columnConfig{At: "54-57", Format: "packed"} },
		"trailer.sums.zoned: it ends at 60, but a record has 56 bytes (length)": func(c *fixedReaderConfig) { c.Trailer.Sums["zoned"] = "50-60" },
		"short: all records have the same length":                               func(c *fixedReaderConfig) { c.Short = true },
		"length: it is not a number of bytes from 1":                            func(c *fixedReaderConfig) { c.Length = -1 },
		`columns.id: pad: "€" is not one byte of the encoding`:                  func(c *fixedReaderConfig) { c.Columns["id"] = columnConfig{At: "2-6", Pad: "€"} },
		"columns.zoned: format: a zoned number fills its column: omit align and pad": func(c *fixedReaderConfig) {
			c.Columns["zoned"] = columnConfig{At: "25-32", Format: "zoned", Decimals: &two, Pad: "0"}
		},
	} {
		cfg := accountReader("in.dat", "ibm037")
		change(&cfg)
		_, err := newFixedReader(cfg, account(t))
		require.ErrorContains(t, err, want)
	}
}

func TestTheCodePagesAreThoseOfIBM(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[x]", readOne(t, "\xAD\xA7\xBD", "ibm1047", columnConfig{}, row.Field{Kind: row.String}))
	require.Equal(t, "[x]", readOne(t, "\xBA\xA7\xBB", "ibm037", columnConfig{}, row.Field{Kind: row.String}))
	require.Equal(t, "€", readOne(t, "\x9F", "ibm1140", columnConfig{}, row.Field{Kind: row.String}))
	require.Equal(t, "ｱ日", readOne(t, "\xB1\x93\xFA", "shift-jis", columnConfig{}, row.Field{Kind: row.String}))
	require.Contains(t, readOne(t, "a\x81", "windows-1252", columnConfig{}, row.Field{Kind: row.String}), "bytes 1-2: field x: it is not valid windows-1252 (see the key encoding)")
	require.Contains(t, readOne(t, "a\xFF", "", columnConfig{}, row.Field{Kind: row.String}), "bytes 1-2: field x: it is not valid UTF-8 (see the key encoding)")
}
