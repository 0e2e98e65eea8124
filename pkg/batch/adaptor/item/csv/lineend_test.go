package csv

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestLinesMayEndWithACarriageReturnAlone(t *testing.T) {
	t.Parallel()
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	content := "id,name\r1,Ann\r\r# no record\r2,\"two\nlines\rof \"\"text\"\"\"\rx,Bob\r3,é"
	want := []string{"1|Ann", "2|two\nlines\rof \"text\"", `!:8: character 1: field id: "x" is not an int`, "3|é"}
	for _, c := range []struct {
		name, content string
		encoding      filestream.EncodingName
	}{
		{"in.csv", content, ""}, {"bom.csv", "\xEF\xBB\xBF" + content + "\r", ""}, {"in.csv.gz", zip(t, content), ""},
		{"latin.csv", strings.ReplaceAll(content, "é", "\xe9"), "latin1"},
	} {
		cfg := readerConfig{Path: file(t, c.name, c.content), Header: headerExact, Comment: "#", Encoding: c.encoding}
		require.Equal(t, want, outcomes(t, cfg, itemType, nil), c.name)
		itemtest.Reader(t, itemtest.ReaderConfig{
			Source: cfg.Path,
			New: func(t testing.TB) item.Reader {
				r, err := newReader(cfg, itemType)
				require.NoError(t, err)
				return r
			},
			Change: func(t testing.TB) { require.NoError(t, os.Truncate(cfg.Path, 12)) },
		})
	}
	cfg := readerConfig{Path: file(t, "bare.csv", "1,a\r2,b\r")}
	require.Equal(t, []string{"1|a", "2|b"}, outcomes(t, cfg, itemType, nil))
}

func TestALongFileOfCarriageReturnsRestartsAnywhere(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("id,name\r")
	for i := range 500 { // more than one buffer
		fmt.Fprintf(&text, "%d,%s\r", i, strings.Repeat("x", 400))
	}
	cfg := readerConfig{Path: file(t, "in.csv", text.String()), Header: headerExact}
	itemtest.Reader(t, itemtest.ReaderConfig{Restarts: 4, New: func(t testing.TB) item.Reader {
		r, err := newReader(cfg, nil)
		require.NoError(t, err)
		return r
	}})
	require.Len(t, outcomes(t, cfg, nil, nil), 500)
}

func TestLineEndsInQuotesAreData(t *testing.T) {
	t.Parallel()
	ids := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "note", Kind: row.String})
	for _, note := range []string{"a\r\nb", "a\nb", "a\rb", "\r\n", "\r", "a\r\r\n", "\r\n\r\n"} {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			content := "id,note" + end + "1,\"" + note + "\"" + end + "x,\"" + note + "\"" + end + "2,b" + end
			cfg := readerConfig{Path: file(t, "in.csv", content), Header: headerExact}
			r, err := newReader(cfg, ids)
			require.NoError(t, err)
			require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
			items := r.NewItems(1)
			require.NoError(t, r.Fill(t.Context(), items, 1))
			require.Equal(t, note, items.At(0).(item.Row).At(1).Str(), "%q", content)
			require.True(t, item.IsConsumed(r.Fill(t.Context(), items, 2)))
			raw := r.Component().(item.RawReader).RawText()
			require.Equal(t, "x,\""+note+"\"", raw.Text, "%q", content)
			require.NoError(t, r.Component().(item.Closer).Close(t.Context()))

			raw.Text = strings.Replace(raw.Text, "x", "3", 1)
			require.NoError(t, r.Component().(item.RawOpener).OpenRaw(t.Context(), item.Meta{Path: cfg.Path, Line: 3}, raw))
			require.NoError(t, r.Fill(t.Context(), items, 2))
			require.Equal(t, note, items.At(1).(item.Row).At(1).Str(), "redriven: %q", content)
		}
	}
}

func TestACarriageReturnInAFileOfLineFeedsIsText(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][]string{
		"a,b\n1\rx,2\n":      {"1\rx|2"},
		"a\rx,b\n1,2\n":      {"1|2"},
		"a,b\r\n1\rx,2\r\n":  {"1\rx|2"},
		"a,b\r\n1,2\r\n":     {"1|2"},
		"a,b\r":              nil,
		"\"a\r\",b\n\"1\",2": {"1|2"},
	} {
		require.Equal(t, want, outcomes(t, readerConfig{Path: file(t, "in.csv", content), Header: headerExact}, nil, nil), "%q", content)
	}
}

func TestAnOptionalColumnMayBeMissing(t *testing.T) {
	t.Parallel()
	item := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "note", Kind: row.String, Nullable: true, Optional: true})
	for content, want := range map[string]string{"id\n1\n": "1|null", "note,id\nx,1\n": "1|x"} {
		require.Equal(t, []string{want}, outcomes(t, readerConfig{Path: file(t, "in.csv", content), Header: headerExact}, item, nil))
	}
	_, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int, Optional: true})
	require.EqualError(t, err, `field "id" is optional, so its type must allow null (int null)`)
}

func TestARecordThatWasNotCompleteAtOpenFailsTheStep(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"id,name\n1,a\n2,b":     ":3: the file grew while it was read",
		"id,name\n1,a\n2,\"b\n": ":3: the file grew while it was read",
		"id,name\n1,a\n\n":      "",
	} {
		cfg := readerConfig{Path: file(t, "in.csv", content), Header: headerExact}
		r, err := newReader(cfg, nil)
		require.NoError(t, err)
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
		f, err := os.OpenFile(cfg.Path, os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = f.WriteString("\"\n3,c\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		items := r.NewItems(1)
		require.NoError(t, r.Fill(t.Context(), items, 1))
		err = r.Fill(t.Context(), r.NewItems(1), 1)
		if want == "" {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.ErrorContains(t, err, cfg.Path+want)
			require.False(t, item.IsConsumed(err))
			require.False(t, exception.IsSkippable(err))
		}
		require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	}
}
