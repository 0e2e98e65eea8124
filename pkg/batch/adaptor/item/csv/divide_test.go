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

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// readPart reads the file, or a part of it: every item and error with its line, and the text of each error.
func readPart(t require.TestingT, cfg readerConfig, part *filestream.Range) (got []string, failed error) {
	ctx := context.Background()
	r, err := newReader(cfg, nil)
	require.NoError(t, err)
	c := r.Component().(*reader)
	if part != nil {
		require.NoError(t, c.Confine(*part))
	}
	if err := c.Open(ctx, nil); err != nil {
		return nil, err
	}
	defer c.Close(ctx) //nolint:errcheck // it is only read
	for {
		items := r.NewItems(1)
		switch err := r.Fill(ctx, items, 1); {
		case errors.Is(err, io.EOF):
			return got, nil
		case item.IsConsumed(err):
			raw := c.RawText()
			got = append(got, fmt.Sprintf("%d! %v %q %d", c.line, err, raw.Text, raw.Offset))
		case err != nil:
			return got, err
		default:
			got = append(got, fmt.Sprintf("%d: %s", c.line, text(items.At(0).(item.Row))))
		}
	}
}

func dialects(t *rapid.T) readerConfig {
	return readerConfig{
		Header:      rapid.SampledFrom([]string{headerExact, headerNone}).Draw(t, "header"),
		Delimiter:   rapid.SampledFrom([]string{",", ",", ";", "||", "blanks"}).Draw(t, "delimiter"),
		Quote:       rapid.SampledFrom([]string{"", "", "", quoteNone, "'"}).Draw(t, "quote"),
		Comment:     rapid.SampledFrom([]string{"", "", "#"}).Draw(t, "comment"),
		LazyQuotes:  rapid.IntRange(0, 4).Draw(t, "lazy") == 0,
		Trim:        rapid.IntRange(0, 4).Draw(t, "trim") == 0,
		SkipLines:   rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "skip"),
		FooterLines: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "footer"),
		Short:       rapid.SampledFrom([]string{"", shortNull}).Draw(t, "short"),
		MaxLine:     rapid.SampledFrom([]registry.Size{0, 0, 12, 60}).Draw(t, "max_line"),
	}
}

// Rule P9.
func TestThePartsTogetherReadTheItemsOfOneReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	divided, parts := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := dialects(t)
		if cfg.Quote != quoteNone {
			cfg.Escape = rapid.SampledFrom([]string{"", "", `\`}).Draw(t, "escape")
		}
		cfg.Path = filepath.Join(dir, "in.csv")
		piece := rapid.SampledFrom([]string{"a", "bc", "1", ",", ",", ";", "||", `"`, `"`, `""`, `"x"`, "\"x\ny\"", `"a,b"`, "'", "\n", "\n", "\n", "\r\n", "\n\n", "\r", "#", " ", "é", `\`})
		switch rapid.IntRange(0, 2).Draw(t, "pieces") {
		case 0:
			piece = rapid.SampledFrom([]string{"1,2\n", "1,\"2\"\n", "\"a\nb\",\"\"\"\"\n", "\"a\r\nb\",\"c,\"\"\"\r\n", "\n", "\"\",\"\"\n"})
		case 1:
			piece = rapid.SampledFrom([]string{"a", ",", `"`, `"`, "\n", "\n", "\r"})
		}
		body := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "body"), "")
		mark := rapid.SampledFrom([]string{"", "", "\xEF\xBB\xBF", "sep=;\n"}).Draw(t, "mark")
		require.NoError(t, os.WriteFile(cfg.Path, []byte(mark+"x,y\n"+body), 0o600))

		want, failed := readPart(t, cfg, nil)
		r, err := newReader(cfg, nil)
		require.NoError(t, err)
		_, ranges, err := r.Component().(*reader).Divide(context.Background(), partcount.Wanted{Number: partcount.Number(rapid.IntRange(1, 9).Draw(t, "n"))})
		if failed != nil || err != nil {
			require.Error(t, failed, "%v", err)
			return
		}
		var got []string
		for i := range ranges {
			more, err := readPart(t, cfg, &ranges[i])
			require.NoError(t, err)
			got = append(got, more...)
		}
		require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
		divided, parts = divided+1, parts+len(ranges)
	})
	require.Greater(t, parts, divided, "some have several parts")
}

func TestRegularQuotesAreDividedWithoutParsing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.csv")
	var text strings.Builder
	text.WriteString("\xEF\xBB\xBFid,name\r\n")
	for i := range 60_000 {
		fmt.Fprintf(&text, "%d,\"name\r\nof \"\"%d\"\"\",\"\"\r\n", i, i)
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
	require.NoError(t, err)
	c := r.Component().(*reader)
	require.NoError(t, c.Open(context.Background(), nil))
	quotes, simple := quotesOf(c)
	require.True(t, simple)
	cuts, err := filestream.Divide(context.Background(), c.in, filestream.Cut{Offset: c.next, Lines: c.lines}, 7, quotes)
	require.NoError(t, err)
	require.Len(t, cuts, 8)
	for _, cut := range cuts[1:7] {
		require.Equal(t, "\"\"\r\n", text.String()[cut.Offset-4:cut.Offset])
		require.EqualValues(t, strings.Count(text.String()[:cut.Offset], "\n"), cut.Lines)
		require.Zero(t, (cut.Lines-c.lines)%2)
	}
	require.EqualValues(t, 120_001, cuts[7].Lines)
	require.NoError(t, c.Close(context.Background()))
}

// A part would begin within a record of the other settings.
func TestAPartIsReadWithTheSettingsThatDividedTheFile(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: filepath.Join(t.TempDir(), "in.csv"), Header: headerExact, Quote: quoteNone}
	require.NoError(t, os.WriteFile(cfg.Path, []byte("x\n\"1\n2\"\n\"3\n4\"\n"), 0o600))
	divided := func() *reader {
		r, err := newReader(cfg, nil)
		require.NoError(t, err)
		return r.Component().(*reader)
	}
	_, ranges, err := divided().Divide(context.Background(), partcount.Wanted{Number: 4})
	require.NoError(t, err)
	require.NoError(t, divided().Confine(ranges[1]))
	cfg.Quote = ""
	require.ErrorContains(t, divided().Confine(ranges[1]), `quote "none", escape`)
}

func TestAFileThatChangedIsNotReadInParts(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: filepath.Join(t.TempDir(), "in.csv"), Header: headerExact}
	require.NoError(t, os.WriteFile(cfg.Path, []byte("x\n1\n2\n3\n"), 0o600))
	r, err := newReader(cfg, nil)
	require.NoError(t, err)
	_, ranges, err := r.Component().(*reader).Divide(context.Background(), partcount.Wanted{Number: 2})
	require.NoError(t, err)
	require.Len(t, ranges, 2)
	require.NoError(t, os.WriteFile(cfg.Path, []byte("x\n1\n2\n3\n4\n"), 0o600))
	c := r.Component().(*reader)
	require.NoError(t, c.Confine(ranges[1]))
	c.AcceptChanges()
	require.ErrorContains(t, c.Open(context.Background(), nil), "changed since it was divided into parts: it grew from 8 to 10 bytes; remove the committed rows and start over (--from-start)")
}
