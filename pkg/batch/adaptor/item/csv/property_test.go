package csv

import (
	"bytes"
	"compress/gzip"
	"context"
	stdcsv "encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var encodings = []struct {
	name filestream.EncodingName
	enc  encoding.Encoding
	bom  string
}{
	{"utf-8", unicode.UTF8, ""},
	{"utf-8", unicode.UTF8, "\xEF\xBB\xBF"},
	{"utf-8", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "\xFF\xFE"},
	{"utf-8", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "\xFE\xFF"},
	{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), ""},
	{"latin1", charmap.ISO8859_1, ""},
	{"iso-8859-15", charmap.ISO8859_15, ""},
	{"windows-1252", charmap.Windows1252, ""},
}

func records(t *rapid.T, n int) [][]string { return recordsOf(t, n, "ab \",;\t\n#éü§'") }

func recordsOf(t *rapid.T, n int, alphabet string) [][]string {
	field := rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 0, 12, -1)
	all := rapid.SliceOfN(rapid.SliceOfN(field, n, n), 0, 12).Draw(t, "records")
	for i, record := range all {
		if n == 1 && record[0] == "" { // an empty line is not a record
			all[i] = []string{"x"}
		}
	}
	return all
}

func TestWhateverEncodingCsvWritesIsReadAndRestarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		columns := []string{"k1", "k2", "k3"}[:rapid.IntRange(1, 3).Draw(t, "columns")]
		want := records(t, len(columns))
		delimiter := rapid.SampledFrom([]string{",", ";", "tab", "§"}).Draw(t, "delimiter")
		enc := rapid.SampledFrom(encodings).Draw(t, "encoding")
		crlf := rapid.Bool().Draw(t, "crlf")
		packed := rapid.Bool().Draw(t, "gzip")

		var text bytes.Buffer
		w := stdcsv.NewWriter(&text)
		w.Comma = comma(t, delimiter)
		w.UseCRLF = crlf
		require.NoError(t, w.Write(columns))
		require.NoError(t, w.WriteAll(want))
		encoded, err := enc.enc.NewEncoder().Bytes(text.Bytes())
		require.NoError(t, err)
		content := append([]byte(enc.bom), encoded...)
		cfg := readerConfig{Path: filepath.Join(dir, "in.csv"), Header: headerExact, Delimiter: delimiter, Encoding: enc.name}
		if packed {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, err := z.Write(content)
			require.NoError(t, errors.Join(err, z.Close()))
			content, cfg.Compression = b.Bytes(), "gzip"
		}
		require.NoError(t, os.WriteFile(cfg.Path, content, 0o600))

		got, at := walk(t, cfg, nil)
		require.Len(t, got, len(want))
		for i := range want {
			text := strings.Join(want[i], "|")
			if crlf { // encoding/csv writes \n in quotes as \r\n
				text = strings.ReplaceAll(text, "\n", "\r\n")
			}
			require.Equal(t, text, got[i])
		}
		restarts(t, cfg, got, at)
	})
}

// walk reads all outcomes with the position before the first and after each.
func walk(t require.TestingT, cfg readerConfig, from item.Position) (got []string, at []item.Position) {
	ctx := context.Background()
	r, err := newReader(cfg, nil)
	require.NoError(t, err)
	c := r.Component().(*reader)
	if err := c.Open(ctx, from); err != nil {
		require.NoError(t, c.Close(ctx))
		return []string{"open: " + err.Error()}, nil
	}
	for {
		pos, err := c.Position()
		require.NoError(t, err)
		at = append(at, pos)
		items := r.NewItems(1)
		err = r.Fill(ctx, items, 1)
		switch {
		case errors.Is(err, io.EOF):
			require.NoError(t, c.Close(ctx))
			return got, at
		case item.IsConsumed(err):
			got = append(got, "!"+err.Error())
		default:
			require.NoError(t, err)
			got = append(got, text(items.At(0).(item.Row)))
		}
	}
}

func restarts(t require.TestingT, cfg readerConfig, got []string, at []item.Position) {
	for i := range at {
		rest, again := walk(t, cfg, at[i])
		require.Equal(t, append([]string{}, got[i:]...), append([]string{}, rest...), "restarted behind %d", i)
		require.Equal(t, at[i:], again)
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a,b\r\n\"1\r\n\",\"\"\"\"\r\n", "\xEF\xBB\xBFa\n#\n\n1", "a\n\"x\ny\n\"z\n", "\xFF\xFEa\x00\n\x001\x00", "a;b\n\"\r", "a,a\n1,2",
	} {
		f.Add([]byte(seed), true, false, false, uint8(0))
	}
	f.Fuzz(func(t *testing.T, content []byte, header, trim, lazy bool, kind uint8) {
		if len(content) > 2000 {
			return
		}
		enc := []filestream.EncodingName{"utf-8", "utf-16", "latin1", "windows-1252"}[int(kind)%4]
		comma := []string{",", "tab", ";"}[int(kind/4)%3]
		cfg := readerConfig{
			Path: filepath.Join(t.TempDir(), "in.csv"), Header: strconv.FormatBool(header), Trim: trim, LazyQuotes: lazy,
			Encoding: enc, Delimiter: comma, Comment: "#", MaxLine: 200,
		}
		if kind >= 128 {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, err := z.Write(content)
			require.NoError(t, errors.Join(err, z.Close()))
			content, cfg.Compression = b.Bytes(), "gzip"
		}
		require.NoError(t, os.WriteFile(cfg.Path, content, 0o600))
		got, at := walk(t, cfg, nil)
		if at != nil {
			restarts(t, cfg, got, at)
		}
	})
}

func TestAStrayQuoteCostsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "lines")
		bad := rapid.IntRange(0, n-1).Draw(t, "bad")
		quoted := rapid.Bool().Draw(t, "others quoted")
		var text, want = "id,name\n", []string{}
		for i := range n {
			id := string(rune('1' + i%9))
			switch {
			case i == bad:
				text += id + ",\"x\n"
				continue
			case quoted:
				text += id + ",\"a,b\"\n"
				want = append(want, id+"|a,b")
			default:
				text += id + ",ab\n"
				want = append(want, id+"|ab")
			}
		}
		path := filepath.Join(dir, "in.csv")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var good []string
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, itemType)
		require.NoError(t, err)
		require.NoError(t, r.Component().(item.Opener).Open(context.Background(), nil))
		errs := 0
		for {
			items := r.NewItems(1)
			err := r.Fill(context.Background(), items, 1)
			if errors.Is(err, io.EOF) {
				break
			}
			if item.IsConsumed(err) {
				errs++
				continue
			}
			require.NoError(t, err)
			good = append(good, textOf(items.At(0)))
		}
		require.NoError(t, r.Component().(item.Closer).Close(context.Background()))
		require.Equal(t, 1, errs)
		require.Equal(t, want, append([]string{}, good...))
	})
}

func textOf(value any) string { return text(value.(item.Row)) }

func comma(t require.TestingT, text string) rune {
	of, err := delimiter(text)
	require.NoError(t, err)
	return []rune(of)[0]
}
