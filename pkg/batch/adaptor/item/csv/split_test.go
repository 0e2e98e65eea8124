package csv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func split(t *testing.T, c readerConfig, raw item.RawText) (list []string) {
	t.Helper()
	fields, err := c.SplitRaw(raw)
	require.NoError(t, err)
	for _, f := range fields {
		list = append(list, fmt.Sprintf("%s=%s (%s)", f.Name, f.Text, raw.Text[f.From:f.To]))
	}
	return list
}

func TestATextIsSplitAsItsReaderReadsIt(t *testing.T) {
	t.Parallel()
	two := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "note", Kind: row.String})
	for _, c := range []struct {
		cfg     readerConfig
		content string
		want    []string
	}{
		{readerConfig{Header: headerExact}, "id,note\nx,\"a, \"\"b\"\"\"\n", []string{"id=x (x)", `note=a, "b" ("a, ""b""")`}},
		{readerConfig{Header: headerExact, Delimiter: ";", Quote: "'"}, "note;id\n'a;b';é\n", []string{"note=a;b ('a;b')", "id=é (é)"}},
		{readerConfig{Header: headerExact}, "sep=|\nid|note\nx|a,b\n", []string{"id=x (x)", "note=a,b (a,b)"}},
		{readerConfig{Header: headerExact}, "id,other,note\n1\n", []string{"id=1 (1)", "other= ()", "note= ()"}},
		{readerConfig{Header: headerExact}, "id,note\n1,a,b\n", []string{"id=1 (1)", "note=a (a)", "=b (b)"}},
		{readerConfig{Delimiter: "tab", Trim: true}, "1\ta\tb\n x\t\tc\n", []string{"id= x ( x)", "note= ()", "=c (c)"}},
		{readerConfig{Delimiter: "blanks"}, "1 a\n x   b \n", []string{"id=x (x)", "note=b (b)"}},
		{readerConfig{Header: headerExact, Encoding: "windows-1252"}, "id,note\nx,\xe9\n", []string{"id=x (x)", "note=é (é)"}},
	} {
		c.cfg.Path, c.cfg.Item = file(t, "in.csv", c.content), two
		r, err := newReader(c.cfg, two)
		require.NoError(t, err)
		unread := itemkit.UnreadItems(t, r)
		require.Len(t, unread, 1, c.content)
		c.cfg.Path = "gone.csv"
		require.Equal(t, c.want, split(t, c.cfg, unread[0].Raw), c.content)
	}
}

func TestATextOfOneOfSeveralRecordTypesHasItsColumns(t *testing.T) {
	t.Parallel()
	c := readerConfig{
		Item: schema(t, row.Field{Name: "id", Kind: row.Int, Nullable: true}, row.Field{Name: "day", Kind: row.DateKind, Nullable: true}),
		Records: map[string]recordType{
			"H": {As: "header", Columns: map[string]int{"day": 2}}, "D": {Columns: map[string]int{"id": 3}},
		},
	}
	require.Equal(t, []string{"=D (D)", "=7 (7)", "id=x (x)", "=y (y)"}, split(t, c, item.RawText{Text: "D,7,x,y"}))
	require.Equal(t, []string{"=Q (Q)", "=1 (1)"}, split(t, c, item.RawText{Text: "Q,1"}))
}

func TestATextWithAWrongQuoteIsNotSplit(t *testing.T) {
	t.Parallel()
	c := readerConfig{Header: headerExact}
	for _, text := range []string{`1,a"b`, `1,"a`, `1,"a"b`} {
		_, err := c.SplitRaw(item.RawText{Text: text, Columns: []string{"id", "note"}})
		require.ErrorContains(t, err, `"`)
	}
	require.Implements(t, (*itemextra.Splitter)(nil), &c)
	require.Equal(t, []string{"id= ()"}, split(t, c, item.RawText{Columns: []string{"id"}}))
}
