package csv

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestARecordThatCannotBeReadHasItsText(t *testing.T) {
	t.Parallel()
	content := "id,note\r\n1,a\r\n\r\n# no\r\nx,\"two\r\nlines\"\r\n2,b\r\n3,c,d\r\n4,e\"f\r\n5,\"open\r\n6," + strings.Repeat("y", 300) + "\r\n\xff,g\r\n7,h"
	ids := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "note", Kind: row.String})
	for _, name := range []string{"in.csv", "in.csv.gz"} {
		path := file(t, name, content)
		if name != "in.csv" {
			path = file(t, name, zip(t, content))
		}
		cfg := readerConfig{Path: path, Header: headerExact, Comment: "#", MaxLine: 100}
		r, err := newReader(cfg, ids)
		require.NoError(t, err)
		var texts []string
		for _, unread := range itemkit.UnreadItems(t, r) {
			raw := unread.Raw
			texts = append(texts, raw.Text)
			require.Equal(t, []string{"id", "note"}, raw.Columns)
			require.Equal(t, content[raw.Offset:raw.Offset+raw.Length], raw.Text)
		}
		require.Equal(t, []string{"x,\"two\r\nlines\"", "3,c,d", `4,e"f`, `5,"open`, "6," + strings.Repeat("y", 300), "\xff,g"}, texts)
		itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
			r, err := newReader(cfg, ids)
			require.NoError(t, err)
			return r
		}})
	}
}

func TestACorrectedTextIsReadWithoutTheFile(t *testing.T) {
	t.Parallel()
	ids := schema(t, row.Field{Name: "note", Kind: row.String}, row.Field{Name: "id", Kind: row.Int, From: "Number"})
	r, err := newReader(readerConfig{Path: "gone.csv", Header: headerExact, Delimiter: ";"}, ids)
	require.NoError(t, err)
	opener := r.Component().(item.RawOpener)
	raw := item.RawText{Text: "12;\"a;b\"", Offset: 70, Length: 9, Columns: []string{"Number", "note"}}
	items := r.NewItems(2)
	for range 2 {
		require.NoError(t, opener.OpenRaw(t.Context(), item.Meta{Path: "in.csv", Line: 9}, raw))
		require.NoError(t, r.Fill(t.Context(), items, items.Len()+1))
		require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
	}
	require.Equal(t, item.Meta{Path: "in.csv", Line: 9}, items.Meta(1))
	require.Equal(t, "a;b 12", items.At(1).(item.Row).Values()[0].String()+" "+items.At(1).(item.Row).Values()[1].String())
	require.Same(t, items.At(0).(item.Row).Schema(), items.At(1).(item.Row).Schema())

	raw.Columns = nil
	other, err := newReader(readerConfig{Path: "gone.csv", Header: headerExact}, ids)
	require.NoError(t, err)
	require.ErrorContains(t, other.Component().(item.RawOpener).OpenRaw(t.Context(), item.Meta{}, raw), "gone.csv")
}

type account struct {
	ID     int8   `batch:"id"`
	IBAN   string `batch:"iban" redact:"true"`
	Amount float64
	Open   bool
	Day    time.Time
}

// Rule C12a.
func TestAnErrorQuotesNothingOfAnItemThatIsRedacted(t *testing.T) {
	t.Parallel()
	lines := []string{
		"S3CRET,x,1,true,2026-11-20T00:00:00Z", "12345,x,1,true,2026-11-20T00:00:00Z", "1,x,S3CRET,true,2026-11-20T00:00:00Z", "1,x,1,S3CRET,2026-11-20T00:00:00Z",
		"1,x,1,true,S3CRET", "1,S3CRET\xff,1,true,2026-11-20T00:00:00Z", "1,S3CRET,1", `1,"S3CRET"x,1,true,2026-11-20T00:00:00Z`,
	}
	r, err := newReader(readerConfig{Path: file(t, "in.csv", "id,iban,amount,open,day\n"+strings.Join(lines, "\n")), Header: headerExact}, item.TypeOf[account]("account"))
	require.NoError(t, err)
	unread := itemkit.UnreadItems(t, r)
	require.Len(t, unread, len(lines))
	require.Empty(t, itemkit.Quoting(unread, "S3CRET", "12345"))
	require.ErrorContains(t, unread[2].Err, "field amount: the value is not a float")
}

// Rule C12.
func TestAMistakeIsLocatedInTheTextOfItsRecord(t *testing.T) {
	t.Parallel()
	fields := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "né", Kind: row.String, From: "note"}, row.Field{Name: "sum", Kind: row.Float})
	faults := func(cfg readerConfig, lines ...string) (list []string) {
		cfg.Path, cfg.Header = file(t, "in.csv", strings.Join(lines, "\n")), headerExact
		r, err := newReader(cfg, fields)
		require.NoError(t, err)
		for _, u := range itemkit.UnreadItems(t, r) {
			list = append(list, u.Fault())
		}
		return list
	}
	require.Equal(t, []string{
		"id/1 [x],é,1", "sum/3 1,é,[1O]", `sum/3 1,"a""é,b",["x"]`, `id/1 ["1` + "\n" + `2"],a,1`, "sum/3 1,é[]", "/4 1,é,1,[4,5]", `né/2 1,[é"]f,1`, `né/2 1,["a"]b,1`, "né/2 1,[\uFFFD],1", `né/2 5,["open,1]`,
	}, faults(readerConfig{Comment: "#"}, "id,note,sum", "x,é,1", "1,é,1O", "# no", "", `1,"a""é,b","x"`, `"1`, `2",a,1`, "1,é", "1,é,1,4,5", `1,é"f,1`, `1,"a"b,1`, "1,\xff,1", `5,"open,1`))
	require.Equal(t, []string{`id/1 ["x"]; a; 1`, `sum/3 1; "a"; ["x"]`}, faults(readerConfig{Delimiter: ";", Trim: true}, "id;note;sum", `"x"; a; 1`, `1; "a"; "x"`))
}
