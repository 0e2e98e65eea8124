package csv

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func schema(t testing.TB, fields ...row.Field) item.Type {
	t.Helper()
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return item.RowOf("", s)
}

func strike(t testing.TB) item.Type {
	return schema(t,
		row.Field{Name: "airport", Kind: row.String, From: "Airport Name"},
		row.Field{Name: "date", Kind: row.DateKind, From: "Flight Date"},
		row.Field{Name: "cost", Kind: row.Int, From: "Cost Total $"},
		row.Field{Name: "speed", Kind: row.Int, Nullable: true, From: "Speed IAS in knots"},
	)
}

// outcomes reads all items as texts joined by |, and consumed errors as "!" and their text.
func outcomes(t testing.TB, cfg readerConfig, itemType item.Type, at item.Position) []string {
	t.Helper()
	r, err := newReader(cfg, itemType)
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Opener).Open(context.Background(), at))
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(context.Background())) }()
	var all []string
	for {
		items := r.NewItems(1)
		err := r.Fill(context.Background(), items, 1)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case item.IsConsumed(err):
			require.True(t, exception.IsSkippable(err), "%v", err)
			require.False(t, exception.IsRetryable(err), "%v", err)
			all = append(all, "!"+strings.TrimPrefix(err.Error(), cfg.Path))
		default:
			require.NoError(t, err)
			all = append(all, text(items.At(0).(item.Row)))
		}
	}
}

func text(r item.Row) string {
	parts := make([]string, r.Len())
	for i := range parts {
		parts[i] = r.At(i).String()
	}
	return strings.Join(parts, "|")
}

func TestTheReaderKeepsTheReaderContract(t *testing.T) {
	t.Parallel()
	dirty := "\xEF\xBB\xBFid;name;note\r\n" +
		"1;Ann;\"two\r\nlines\"\r\n\r\n# a comment\r\n" +
		"x;Bob;bad int\r\n" +
		"3;Cy\r\n" +
		"4;\"D\"x;bad quote\r\n" +
		"5;\"never closed;\r\n" +
		"6;Flo;\"a;b\"\"c\"\r\n" +
		"7;\xff;not UTF-8\r\n" +
		"8;Hal;end"
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "note", Kind: row.String})
	for name, content := range map[string]string{"plain.csv": dirty, "packed.csv.gz": zip(t, dirty)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, name, content)
			cfg := readerConfig{Path: path, Header: headerExact, Delimiter: ";", Comment: "#"}
			itemtest.Reader(t, itemtest.ReaderConfig{
				Source: path,
				New: func(t testing.TB) item.Reader {
					r, err := newReader(cfg, itemType)
					require.NoError(t, err)
					return r
				},
				Change: func(t testing.TB) {
					f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					require.NoError(t, err)
					_, err = f.WriteString("9;Ida;more\r\n")
					require.NoError(t, errors.Join(err, f.Close()))
				},
			})
		})
	}
	require.Equal(t, []string{
		"1|Ann|two\r\nlines",
		`!:6: character 1: field id: "x" is not an int`,
		"!:7: the record has 2 fields, not 3",
		`!:8: character 5: extraneous or missing " in quoted-field (lazy_quotes: true accepts it as text)`,
		`!:9: a quoted field is malformed at line 10, character 7: extraneous or missing " in quoted-field`,
		`6|Flo|a;b"c`,
		`!:11: character 3: field name: "\xff" is not valid UTF-8 (see the key encoding)`,
		"8|Hal|end",
	}, outcomes(t, readerConfig{Path: file(t, "in.csv", dirty), Header: headerExact, Delimiter: ";", Comment: "#"}, itemType, nil))
}

func zip(t testing.TB, content string) string {
	var b bytes.Buffer
	// Two members, as our own writer makes them.
	for _, part := range []string{content[:len(content)/2], content[len(content)/2:]} {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(part))
		require.NoError(t, errors.Join(err, w.Close()))
	}
	return b.String()
}

func TestRealStrikesRestartAnywhere(t *testing.T) {
	t.Parallel()
	path := "../../../../../example/birdstrikes/data/birdstrikes.csv"
	require.FileExists(t, path)
	cfg := readerConfig{Path: path, Header: headerExact}
	itemtest.Reader(t, itemtest.ReaderConfig{Restarts: 4, New: func(t testing.TB) item.Reader {
		r, err := newReader(cfg, strike(t))
		require.NoError(t, err)
		return r
	}})
	all := outcomes(t, cfg, strike(t), nil)
	require.Len(t, all, 10000)
	require.Equal(t, "BARKSDALE AIR FORCE BASE ARPT|1990-01-08|0|300", all[0])
	for _, o := range all {
		require.NotEqual(t, '!', o[0], o)
	}
}

func TestWithoutItemEveryColumnIsAStringKnownWhenOpen(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: file(t, "in.csv", "a,,c\n1,2,\n"), Header: headerExact}
	out, err := Components()[0].Types(&cfg, nil)
	require.NoError(t, err)
	require.True(t, out.Schema().IsOpen())
	r, err := newReader(cfg, out)
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Opener).Open(context.Background(), nil))
	defer r.Component().(item.Closer).Close(context.Background()) //nolint:errcheck // read only
	items := r.NewItems(1)
	require.NoError(t, r.Fill(context.Background(), items, 1))
	got := items.At(0).(item.Row)
	require.Equal(t, "{a: string, column2: string, c: string}", got.Schema().String())
	require.Equal(t, "1|2|", text(got))
	require.Equal(t, item.Meta{Path: cfg.Path, Line: 2}, items.Meta(0))
}

func TestWithoutHeaderColumnsGoByPosition(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: file(t, "in.tsv", "1\tx\tmore\n2\n3\t\n"), Delimiter: "tab", Trim: true}
	item := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	wrong := []string{"!:2: the record has 1 fields, not 3" + otherWidth, "!:3: the record has 2 fields, not 3" + otherWidth}
	require.Equal(t, append([]string{"1|x"}, wrong...), outcomes(t, cfg, item, nil))
	require.Equal(t, append([]string{"1|x|more"}, wrong...), outcomes(t, cfg, nil, nil))
}

func TestAStructIsReadWithoutRows(t *testing.T) {
	t.Parallel()
	type order struct {
		ID   int8
		Paid *time.Time `from:"Paid At" format:"yyyyMMdd"`
		Memo string
	}
	path := file(t, "in.csv", "memo,Paid At,id,other\nhello,20261121,1,x\n,,2,x\n,,300,x\n,,4,x\n")
	itemtest.Reader(t, itemtest.ReaderConfig{
		New: func(t testing.TB) item.Reader {
			r, err := newReader(readerConfig{Path: path, Header: headerExact}, item.TypeOf[order]("order"))
			require.NoError(t, err)
			return r
		},
		Want: []any{
			order{ID: 1, Paid: new(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)), Memo: "hello"}, order{ID: 2}, order{ID: 4},
		},
	})
}

func TestHeaderProblemsAreOneClearLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ content, want string }{
		"missing":   {"id,Nam\n1,x\n", `csv: PATH has no column "name" for field name (nearest: "Nam")`},
		"different": {"id,zzzzzzzz\n1,x\n", `csv: PATH has no column "name" for field name (its columns are "id", "zzzzzzzz")`},
		"case":      {"id,NAME\n1,x\n", `csv: PATH has no column "name" for field name (nearest: "NAME"; header: loose accepts it)`},
		"twice":     {"id,name,name\n1,x,y\n", `csv: PATH: column "name" is there twice (field name)`},
		"delimiter": {"id;name\n1;x\n", `csv: PATH: its header is one column, "id;name": if ";" separates the columns, set delimiter: ";"`},
		"tab":       {"id\tname\n1\tx\n", `csv: PATH: its header is one column, "id\tname": if "tab" separates the columns, set delimiter: "tab"`},
		"empty":     {"", "csv: PATH is empty: its first line must name the columns (or set header: false)"},
		"broken":    {"id,na\"me\n", `csv: the header is unreadable: PATH:1: character 6: bare " in non-quoted-field (lazy_quotes: true accepts it as text)`},
	}
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, "in.csv", c.content)
			r, err := newReader(readerConfig{Path: path, Header: headerExact}, itemType)
			require.NoError(t, err)
			err = r.Component().(item.Opener).Open(context.Background(), nil)
			require.Error(t, err)
			require.Equal(t, c.want, strings.ReplaceAll(err.Error(), path, "PATH"))
			require.False(t, exception.IsSkippable(err))
			require.NoError(t, r.Component().(item.Closer).Close(context.Background()))
		})
	}
}

func TestALooseHeaderIsFoundWithoutCaseAndBlanks(t *testing.T) {
	t.Parallel()
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "paid", Kind: row.String, From: "Paid On"})
	cfg := readerConfig{Header: headerLoose}
	for content, want := range map[string]string{
		" ID ,paid\u00a0on,x\n1,a,b\n": "1|a", "PAIDON,\ufeffId\na,1\n": "1|a", "ID,id,Paid  On\n1,2,a\n": "2|a",
	} {
		cfg.Path = file(t, "in.csv", content)
		require.Equal(t, []string{want}, outcomes(t, cfg, itemType, nil))
	}
	cfg.Path = file(t, "in.csv", "ID,Id,Paid On\n1,2,a\n")
	r, err := newReader(cfg, itemType)
	require.NoError(t, err)
	require.ErrorContains(t, r.Component().(item.Opener).Open(t.Context(), nil), `column "id" is there twice (field id)`)
}

func TestAMissingFileIsNamedByItsAbsolutePath(t *testing.T) {
	t.Parallel()
	r, err := newReader(readerConfig{Path: "not/there.csv", Header: headerExact}, nil)
	require.NoError(t, err)
	err = r.Component().(item.Opener).Open(context.Background(), nil)
	abs, _ := filepath.Abs("not/there.csv")
	require.EqualError(t, err, "csv: no such file: "+abs)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestARestartTellsWhatChanged(t *testing.T) {
	t.Parallel()
	path := file(t, "in.csv", "a\n1\n2\n")
	at := positionBehind(t, path, 1)
	change := func(content string, when time.Time, want string) {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chtimes(path, when, when))
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
		require.NoError(t, err)
		err = r.Component().(item.Opener).Open(context.Background(), at)
		var changed *filestream.ChangedError
		require.ErrorAs(t, err, &changed)
		require.Contains(t, err.Error(), want)
	}
	now := time.Now()
	change("a\n1\n2\n3\n", now, "it grew from 6 to 8 bytes")
	change("a\n1\n", now, "it shrank from 6 to 4 bytes")
	change("a\n1\n3\n", now, "its content is different")
	change("a\n1\n2\n", now.Add(time.Hour), "it was modified at")
}

func TestAnAcceptedFileIsGoneOnWithBehindWhatWasRead(t *testing.T) {
	t.Parallel()
	path := file(t, "in.csv", "a\n1\nx2\n")
	at := positionBehind(t, path, 1)
	open := func(content string) (*reader, error) {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
		require.NoError(t, err)
		r.Component().(itemextra.ChangesAccepter).AcceptChanges()
		return r.Component().(*reader), r.Component().(item.Opener).Open(context.Background(), at)
	}
	_, err := open("a\n1\n2\n3\n")
	require.NoError(t, err, "a line behind it was corrected")
	var changed *filestream.ChangedError
	_, err = open("a\n10\n2\n")
	require.ErrorAs(t, err, &changed)
	require.ErrorContains(t, err, "no line ends at the last position, byte 4")
	_, err = open("a\n")
	require.ErrorAs(t, err, &changed)
	require.ErrorContains(t, err, "it has 2 bytes, but 4 were read")
}

func positionBehind(t testing.TB, path string, n int) item.Position {
	t.Helper()
	r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Opener).Open(context.Background(), nil))
	require.NoError(t, r.Fill(context.Background(), r.NewItems(n), n))
	at, err := r.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Closer).Close(context.Background()))
	return at
}

func TestARecordLongerThanTheLimitIsInvalidAndCostsNoMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	content := "a,b\n1,2\n" + long + ",3\n4,5\n6,\"" + long + "\n7,8\n" + strings.Repeat("# comment\n", 1000) + "9,10\n"
	cfg := readerConfig{Path: file(t, "in.csv", content), Header: headerExact, MaxLine: 1 << 10, Comment: "#"}
	const tooLong = ": the record is longer than 1024 bytes (max_line); is a quote not closed?"
	require.Equal(t, []string{"1|2", "!:3" + tooLong, "4|5", "!:5" + tooLong, "7|8", "9|10"}, outcomes(t, cfg, nil, nil))
}

func TestAVeryWideHeaderIsReadAgainInsteadOfStored(t *testing.T) {
	t.Parallel()
	names := make([]string, 2000)
	for i := range names {
		names[i] = "column_number_" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
	}
	content := strings.Join(names, ",") + "\n" + strings.Repeat(strings.Repeat("1,", len(names)-1)+"1\n", 5)
	path := file(t, "wide.csv", content)
	itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
		require.NoError(t, err)
		return r
	}})
}

func TestTheConfigSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	err := (&readerConfig{Delimiter: "ab", Comment: "\"", MaxLine: -1, Encoding: "klingon"}).Validate()
	require.ErrorContains(t, err, `delimiter: "ab" is a word: write the character itself, tab or blanks`)
	require.ErrorContains(t, err, `comment: "\"" is not a single character`)
	require.ErrorContains(t, err, "max_line: it is negative")
	require.ErrorContains(t, err, `encoding: unknown encoding "klingon"`)
	require.ErrorContains(t, (&writerConfig{Delimiter: "\n"}).Validate(), "delimiter")

	_, err = Components()[0].Types(&readerConfig{Item: item.TypeOf[[]int]("ints")}, nil)
	var key *registry.ConfigError
	require.ErrorAs(t, err, &key)
	require.Equal(t, "item", key.Key)
	_, err = Components()[1].Types(nil, item.TypeOf[[]int]("ints"))
	require.ErrorContains(t, err, "type ints has no record form")
}

func TestTheSchemaListsTheEncodingsThatThereAre(t *testing.T) {
	t.Parallel()
	for _, config := range []any{readerConfig{}, writerConfig{}} {
		f, _ := reflect.TypeOf(config).FieldByName("Encoding")
		require.Equal(t, filestream.Encodings(), reflect.Zero(f.Type).Interface().(registry.Choice).Values())
	}
}

func TestACharacterThatTheEncodingLacksIsAnInvalidItemOfItsField(t *testing.T) {
	t.Parallel()
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	for _, c := range []struct {
		encoding      filestream.EncodingName
		content, want string
	}{
		{"utf-16", "\xff\xfei\x00d\x00,\x00n\x00a\x00m\x00e\x00\n\x001\x00,\x00a\x00\x00\xd8b\x00\n\x002\x00,\x00\xfd\xff\n\x00", `!:2: character 3: field name: "a\xffb" is not valid utf-16 (see the key encoding)`},
		{"", "\xfe\xff\x00i\x00d\x00,\x00n\x00a\x00m\x00e\x00\n\x001\x00,\x00a\xdc\x00\x00b\x00\n\x002\x00,\xff\xfd\x00\n", `!:2: character 3: field name: "a\xffb" is not valid utf-16 (see the key encoding)`},
		{"windows-1252", "id,name\n1,\x81\n2,\x80\n", `!:2: character 3: field name: "\x81" is not valid windows-1252 (see the key encoding)`},
		{"sjis", "id,name\n1,\x82\n2,\x83\x5c\n", `!:2: character 3: field name: "\xff" is not valid shift-jis (see the key encoding)`},
		{"utf-8", "id,name\n1,\x81\n2,\uFFFD\n", `!:2: character 3: field name: "\x81" is not valid UTF-8 (see the key encoding)`},
	} {
		cfg := readerConfig{Path: file(t, "in.csv", c.content), Header: headerExact, Encoding: c.encoding}
		got := outcomes(t, cfg, itemType, nil)
		require.Len(t, got, 2, c.encoding)
		require.Equal(t, c.want, strings.ReplaceAll(got[0], `"\x82"`, `"\xff"`), c.encoding)
		require.Contains(t, []string{"2|\uFFFD", "2|€", "2|ソ"}, got[1])
	}
}

func TestACutOffFileFailsAgainAndAgainAndIsNotSkipped(t *testing.T) {
	t.Parallel()
	content := zip(t, "a,b\n1,2\n3,4\n5,")
	path := file(t, "in.csv.gz", content[:len(content)-4])
	r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
	require.NoError(t, err)
	c := r.Component().(*reader)
	require.NoError(t, c.Open(context.Background(), nil))
	require.NoError(t, r.Fill(context.Background(), r.NewItems(2), 2))
	before, err := c.Position()
	require.NoError(t, err)
	for range 3 {
		err := r.Fill(context.Background(), r.NewItems(1), 1)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.EqualError(t, err, "csv: "+path+":4: not readable as gzip: unexpected EOF")
		require.False(t, exception.IsSkippable(err) || item.IsConsumed(err))
		after, err := c.Position()
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
	require.NoError(t, c.Close(context.Background()))
	require.Error(t, r.Fill(context.Background(), r.NewItems(1), 1), "a closed reader reads nothing")
}
