package text

import (
	"context"
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
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func payment(t require.TestingT) item.Type {
	schema, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String},
		row.Field{Name: "city", Kind: row.String, Nullable: true, Nulls: []string{""}}, row.Field{Name: "cents", Kind: row.Int, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("payment", schema)
}

func columns() map[string]columnConfig {
	return map[string]columnConfig{"id": {At: "2-6", Pad: "0"}, "name": {At: "7-12"}, "city": {At: "15-18", Overflow: "cut"}, "cents": {At: "19-24"}}
}

func readerConfig(path string) fixedReaderConfig {
	return fixedReaderConfig{Path: path, Columns: columns(), Record: "D", Header: "HEAD", Trailer: &trailerConfig{Begins: "T", Count: "2-8"}}
}

func writerConfig(path string) fixedWriterConfig {
	return fixedWriterConfig{Path: path, Columns: columns(), Record: "D", Header: "HEAD 1", Trailer: &trailerConfig{Begins: "T", Count: "2-8"}, LineEnd: "crlf"}
}

func fileOf(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.txt")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// outcomes reads a file to its end: items, and the errors of those that do not fit.
func outcomes(t testing.TB, r item.Reader) (all []string, end error) {
	t.Helper()
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	for {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		switch {
		case err == nil:
			all = append(all, texts(items.At(0)))
		case item.IsConsumed(err):
			all = append(all, "!"+err.Error())
		default:
			require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
			return all, err
		}
	}
}

func fixedReader(t testing.TB, cfg fixedReaderConfig) item.Reader {
	t.Helper()
	r, err := newFixedReader(cfg, payment(t))
	require.NoError(t, err)
	return r
}

const dirty = "HEAD of the file\n" +
	"D00001Ada     Köln  1200\n" +
	"\n" +
	"D-0002Grace\tX               \r\n" +
	"D0000xBob                 7\n" +
	"X00004\n" +
	"D00005Cy\n" +
	"D00006\xff                       \n" +
	"D00000Zoë     Ürdi-00012more\n" +
	"T0000007\n"

func TestRecordsAreReadByTheirPlaces(t *testing.T) {
	t.Parallel()
	path := fileOf(t, dirty)
	all, err := outcomes(t, fixedReader(t, readerConfig(path)))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{
		"1 Ada Köln 1200",
		"-2 Grace\t null null",
		`!` + path + `:5: characters 2-6: field id: "x" is not an int`,
		`!` + path + `:6: the line does not begin with "D" (record)`,
		`!` + path + `:7: the line has 8 characters, but its columns need 24 (short: true accepts it)`,
		`!` + path + `:8: the line is not valid UTF-8 (see the key encoding)`,
		"0 Zoë Ürdi -12",
	}, all)
}

func TestALineThatTheEncodingDoesNotHaveIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	path := fileOf(t, "D00001Ada\x81    K\xf6ln  1200\nD00002\x80              \nT0000002\n")
	cfg := readerConfig(path)
	cfg.Encoding, cfg.Header, cfg.HeaderLines, cfg.Short = "windows-1252", "", 0, true
	all, err := outcomes(t, fixedReader(t, cfg))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"!" + path + ":1: the line is not valid windows-1252 (see the key encoding)", "2 € null null"}, all)
	lines, err := newLinesReader(linesConfig{Path: path, Encoding: "windows-1253"})
	require.NoError(t, err)
	all, err = outcomes(t, lines)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "!"+path+":1: the line is not valid windows-1253 (see the key encoding)", all[0])
}

func texts(one any) string {
	var all []string
	for _, v := range one.(item.Row).Values() {
		if v.IsNull() {
			all = append(all, "null")
		} else {
			all = append(all, v.String())
		}
	}
	return strings.Join(all, " ")
}

func TestTheReadersKeepTheContract(t *testing.T) {
	t.Parallel()
	path := fileOf(t, dirty)
	add := func(t testing.TB) {
		require.NoError(t, os.WriteFile(path, []byte(dirty+"T0000007\n"), 0o600))
	}
	t.Run("fixed", func(t *testing.T) {
		itemtest.Reader(t, itemtest.ReaderConfig{Source: path, New: func(t testing.TB) item.Reader { return fixedReader(t, readerConfig(path)) }})
	})
	t.Run("lines", func(t *testing.T) {
		itemtest.Reader(t, itemtest.ReaderConfig{Source: path, Change: add, New: func(t testing.TB) item.Reader {
			r, err := newLinesReader(linesConfig{Path: path, MaxLine: 25})
			require.NoError(t, err)
			return r
		}})
	})
}

func TestAFileThatIsNotWholeFailsTheStep(t *testing.T) {
	t.Parallel()
	const head, one, two = "HEAD\n", "D00001Ada                 \n", "D00002Bob                 \n"
	for content, want := range map[string]string{
		"":                                     "the file has no header: it ends here",
		one + "T0000001\n":                     `must begin with "HEAD"`,
		head + one:                             "the file has no trailer",
		head + one + "T0000002\n":              "the trailer says 2 records, but the file has 1",
		head + one + two + "T0000001\n":        "the trailer says 1 records, but the file has 2",
		head + one + "T\n":                     "the trailer has no number of records at 2-8",
		head + one + "T0000001\n\n" + two:      "the file continues after its trailer",
		head + one + "T0000001\n" + "T0000001": "the file continues after its trailer",
	} {
		path := fileOf(t, content)
		r := fixedReader(t, readerConfig(path))
		err := r.Component().(item.Opener).Open(t.Context(), nil)
		if err == nil {
			require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
			_, err = outcomes(t, r)
		}
		require.ErrorContains(t, err, want, content)
		require.ErrorContains(t, err, path+":")
	}
}

func TestALineMayBeShortWhereThatIsSaid(t *testing.T) {
	t.Parallel()
	cfg := readerConfig(fileOf(t, "D00005Cy\nD1\n"))
	cfg.Short, cfg.Header, cfg.Trailer = true, "", nil
	all, err := outcomes(t, fixedReader(t, cfg))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"5 Cy null null", "1  null null"}, all)
}

func TestACorrectedLineIsReadWithoutTheFile(t *testing.T) {
	t.Parallel()
	r := fixedReader(t, readerConfig("gone.txt"))
	raw := item.RawText{Text: "D00002Bob               ", Offset: 70}
	require.NoError(t, r.Component().(item.RawOpener).OpenRaw(t.Context(), item.Meta{Path: "in.txt", Line: 9}, raw))
	items := r.NewItems(1)
	require.NoError(t, r.Fill(t.Context(), items, 1))
	require.Equal(t, item.Meta{Path: "in.txt", Line: 9}, items.Meta(0))
	require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
}

func TestAConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*fixedReaderConfig){
		`columns.id: "6-2" is not FIRST-LAST`:                                       func(c *fixedReaderConfig) { c.Columns["id"] = columnConfig{At: "6-2"} },
		`columns.nam: the item has no field nam (did you mean name?)`:               func(c *fixedReaderConfig) { c.Columns["nam"] = columnConfig{At: "30"} },
		`columns: the field cents of the item has no column`:                        func(c *fixedReaderConfig) { delete(c.Columns, "cents") },
		`columns.name: it begins at 6, inside the column id, which ends at 6`:       func(c *fixedReaderConfig) { c.Columns["name"] = columnConfig{At: "6-12"} },
		`columns.id: it begins at 1, inside the text "D" that a record begins with`: func(c *fixedReaderConfig) { c.Columns["id"] = columnConfig{At: "1-6"} },
		`columns.id: pad: "ab" is not a single character`:                           func(c *fixedReaderConfig) { c.Columns["id"] = columnConfig{At: "2-6", Pad: "ab"} },
		`columns.id: pad: "0" after a number would change it`:                       func(c *fixedReaderConfig) { c.Columns["id"] = columnConfig{At: "2-6", Pad: "0", Align: "left"} },
		`trailer.begins: "D9" cannot be distinguished from "D"`:                     func(c *fixedReaderConfig) { c.Trailer.Begins = "D9" },
		`trailer.count: it begins at 1, inside "T"`:                                 func(c *fixedReaderConfig) { c.Trailer.Count = "1-3" },
		`header_lines: header means that there is one such line`:                    func(c *fixedReaderConfig) { c.HeaderLines = 2 },
		`max_line: it is negative`:                                                  func(c *fixedReaderConfig) { c.MaxLine = -1 },
	} {
		cfg := readerConfig("in.txt")
		change(&cfg)
		_, err := newFixedReader(cfg, payment(t))
		require.ErrorContains(t, err, want)
	}
}

func TestTheWritersKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string, use registry.BuildContext) (item.Writer, error){
		"fixed": func(path string, use registry.BuildContext) (item.Writer, error) {
			return newFixedWriter(writerConfig(path), use)
		},
		"lines": func(path string, use registry.BuildContext) (item.Writer, error) {
			itemType, err := lineType(defaultField)
			require.NoError(t, err)
			use.In = itemType
			return newLinesWriter(linesWriterConfig{Path: path}, use)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "new", "out.txt")
			chunks := func(t testing.TB) []item.Items {
				if name == "fixed" {
					return itemtest.Chunks([]item.Row{pay(t, 1, "Ada")}, []item.Row{pay(t, 2, "Bob"), pay(t, -3, "Zoë")}, []item.Row{pay(t, 4, "Cy")})
				}
				itemType, err := lineType(defaultField)
				require.NoError(t, err)
				text := func(s string) item.Row { return row.New(itemType.Schema(), []row.Value{row.StringValue(s)}) }
				return itemtest.Chunks([]item.Row{text("a"), text("")}, []item.Row{text("b ")})
			}
			want := "a\n\nb \n"
			if name == "fixed" {
				want = "HEAD 1\r\nD00001Ada               \r\nD00002Bob               \r\nD-0003Zoë               \r\nD00004Cy                \r\nT0000004\r\n"
			}
			newFor := func(t testing.TB, attempt core.Attempt) item.Writer {
				w, err := make(path, itemtest.Use(payment(t), attempt))
				require.NoError(t, err)
				return w
			}
			itemtest.Writer(t, itemtest.WriterConfig{
				New:    func(t testing.TB) item.Writer { return newFor(t, core.Attempt{Exclusive: true}) },
				NewFor: newFor, Chunks: chunks, Want: want, Hidden: true,
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
		})
	}
}

func pay(t require.TestingT, id int64, name string) item.Row {
	return row.New(payment(t).Schema(), []row.Value{row.IntValue(id), row.StringValue(name), {}, {}})
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "out.txt")
		text := rapid.StringMatching(`[A-Zäß0 -]{0,7}[A-Zäß0-]`)
		values := []row.Value{
			row.IntValue(rapid.Int64Range(-99999, 99999).Draw(t, "id")), row.StringValue(text.Draw(t, "name")),
			row.StringValue(text.Draw(t, "city")), row.IntValue(rapid.Int64Range(-999999, 999999).Draw(t, "cents")),
		}
		want := texts(row.New(payment(t).Schema(), values))
		w, err := newFixedWriter(writerConfig(path), registry.BuildContext{In: payment(t)})
		require.NoError(t, err)
		c := w.Component().(*writer)
		ctx := context.Background()
		require.NoError(t, c.Open(ctx, nil))
		err = w.Write(ctx, itemtest.Chunks([]item.Row{row.New(payment(t).Schema(), values)})[0])
		fits := len([]rune(values[1].Str())) <= 6 && values[0].Int() > -10000 && values[3].Int() > -100000
		if !fits {
			require.ErrorContains(t, err, "characters, but its column has")
			require.NoError(t, c.Close(ctx))
			return
		}
		require.NoError(t, err)
		require.NoError(t, c.Release(ctx))
		require.NoError(t, c.Finish(ctx))
		r, err := newFixedReader(readerConfig(path), payment(t))
		require.NoError(t, err)
		require.NoError(t, r.Component().(item.Opener).Open(ctx, nil))
		items := r.NewItems(1)
		require.NoError(t, r.Fill(ctx, items, 1))
		require.NoError(t, r.Component().(item.Closer).Close(ctx))
		if city := []rune(values[2].Str()); len(city) > 4 { // it is cut, and blanks fill it up
			values[2] = row.StringValue(strings.TrimRight(string(city[:4]), " "))
			if values[2].Str() == "" {
				values[2] = row.Value{}
			}
			want = texts(row.New(payment(t).Schema(), values))
		}
		require.Equal(t, want, texts(items.At(0)))
	})
}

func TestAValueThatNeedsTwoLinesIsInvalid(t *testing.T) {
	t.Parallel()
	w, err := newFixedWriter(writerConfig(filepath.Join(t.TempDir(), "out.txt")), registry.BuildContext{In: payment(t)})
	require.NoError(t, err)
	c := w.Component().(*writer)
	require.NoError(t, c.Open(t.Context(), nil))
	err = w.Write(t.Context(), itemtest.Chunks([]item.Row{pay(t, 1, "a\nb")})[0])
	require.ErrorContains(t, err, "field name: its text has a line end")
	require.NoError(t, c.Close(t.Context()))
}

func TestLinesTakesAnItemType(t *testing.T) {
	t.Parallel()
	type entry struct{ Text string }
	path := fileOf(t, "a\nb\n")
	r, err := newLinesReader(linesConfig{Path: path, Field: "line", Item: item.TypeOf[entry]("entry"), MaxLine: 100})
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	items := r.NewItems(2)
	require.NoError(t, r.Fill(t.Context(), items, 2))
	require.Equal(t, []entry{{"a"}, {"b"}}, items.(*item.Slice[entry]).Items)
	for want, cfg := range map[string]linesConfig{
		"field: it cannot be combined with item":                             {Path: path, Field: "text", Item: item.TypeOf[entry]("entry"), MaxLine: 100},
		"item: a line is one text: expected a type with one field, a string": {Path: path, Item: payment(t), MaxLine: 100},
		"such as {line: string}, but number has other fields":                {Path: path, Item: item.TypeOf[struct{ N int64 }]("number"), MaxLine: 100},
	} {
		_, err := newLinesReader(cfg)
		require.ErrorContains(t, err, want)
	}
}

// Rule C12.
func TestAMistakeIsLocatedInTheTextOfItsLine(t *testing.T) {
	t.Parallel()
	r, err := newFixedReader(fixedReaderConfig{Path: fileOf(t, "D00012Zoë     Kiel    1O\nD0001\nD0001ZZoë     Kiel    10\n"), Columns: columns(), Record: "D"}, payment(t))
	require.NoError(t, err)
	var faults []string
	for _, u := range itemkit.UnreadItems(t, r) {
		faults = append(faults, u.Fault())
	}
	require.Equal(t, []string{"cents/4 D00012Zoë     Kiel[    1O]", "id/1 D[0001]", "id/1 D[0001Z]Zoë     Kiel    10"}, faults)
}
