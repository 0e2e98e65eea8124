package json

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func rawTexts(unread []itemkit.Unread) (list []item.RawText) {
	for _, u := range unread {
		list = append(list, u.Raw)
	}
	return list
}

func TestAnElementThatCannotBeReadHasItsText(t *testing.T) {
	t.Parallel()
	content := `{"items": [{"id":1}, {"id":"x","a":[1,2]},7,{"id":2},null]}`
	for _, name := range []string{"in.json", "in.json.gz"} {
		r := arrayReader(t, readerConfig{Path: file(t, name, content), Items: "items"}, rows(t))
		require.Equal(t, []item.RawText{
			{Text: `{"id":"x","a":[1,2]}`, Offset: 21, Length: 20},
			{Text: "7", Offset: 42, Length: 1},
			{Text: "null", Offset: 53, Length: 4},
		}, rawTexts(itemkit.UnreadItems(t, r)))
	}
}

func TestALineThatCannotBeReadHasItsText(t *testing.T) {
	t.Parallel()
	long := `{"id":1,"name":"` + strings.Repeat("n", 200) + `"}`
	content := "{\"id\":1}\n\n  {\"id\":\"x\"} \r\n{broken\n" + long + "\r\n{\"id\":2}"
	r, err := newLinesReader(linesReaderConfig{Path: file(t, "in.jsonl", content), MaxLine: 100}, rows(t))
	require.NoError(t, err)
	unread := itemkit.UnreadItems(t, r)
	found := rawTexts(unread)
	require.Equal(t, item.RawText{Text: `{"id":"x"}`, Offset: 12, Length: 10}, found[0])
	require.Equal(t, "{broken", found[1].Text)
	require.Equal(t, long, found[2].Text)
	require.Len(t, found, 3)
	var faults []string
	for _, u := range unread {
		faults = append(faults, u.Fault())
	}
	require.Equal(t, []string{`id/0 {"id":["x"]}`, "/0 {[b]roken", "/0"}, faults)
	for _, raw := range found {
		require.Equal(t, raw.Text, content[raw.Offset:raw.Offset+raw.Length])
	}
}

func TestACorrectedDocumentIsReadWithoutTheFile(t *testing.T) {
	t.Parallel()
	lines, err := newLinesReader(linesReaderConfig{Path: "gone.jsonl"}, rows(t))
	require.NoError(t, err)
	for _, r := range []item.Reader{lines, arrayReader(t, readerConfig{Path: "gone.json"}, rows(t))} {
		read := func(text string) (string, error) {
			meta := item.Meta{Path: "in.json", Line: 4, Index: 2}
			require.NoError(t, r.Component().(item.RawOpener).OpenRaw(t.Context(), meta, item.RawText{Text: text, Offset: 9}))
			items := r.NewItems(1)
			if err := r.Fill(t.Context(), items, 1); err != nil {
				return "", err
			}
			require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
			require.Equal(t, meta, items.Meta(0))
			return items.At(0).(item.Row).Values()[0].String(), nil
		}
		got, err := read(" {\n\"id\": 12}\n")
		require.NoError(t, err)
		require.Equal(t, "12", got)
		for text, want := range map[string]string{
			`{"id":1} {"id":2}`: "not JSON", `{"id":`: "not JSON", `[1`: "not JSON", "{\"id\":\"x\"}": "not of type int",
		} {
			_, err := read(text)
			require.ErrorContains(t, err, want)
			require.True(t, item.IsConsumed(err), "a mistake of a person is the item's fault")
			require.Equal(t, item.RawText{Text: text, Offset: 9, Length: int64(len(text))}, r.Component().(item.RawReader).RawText())
		}
		_, err = read(" ")
		require.Equal(t, io.EOF, err)
	}
}

type account struct {
	ID     int8      `json:"id"`
	IBAN   string    `json:"iban"   redact:"true"`
	Opened time.Time `json:"opened"`
	Rate   float64   `from:"terms.rate"`
	Limit  int8      `from:"terms.limit"`
}

// Rule C12a.
func TestAnErrorQuotesNothingOfAnItemThatIsRedacted(t *testing.T) {
	t.Parallel()
	docs := []string{
		`{"id":"S3CRET","iban":"x"}`, `{"id":12345,"iban":"x"}`, `{"id":1,"opened":"S3CRET"}`, `{"iban":"S3CRET"`, `{"id":1,"terms":{"rate":"S3CRET"}}`,
		`{"id":1,"terms":{"limit":12345}}`, `{"id":1,"terms":"S3CRET"}`, `"S3CRET"`, `{"iban":"S3CRET","iban":"S3CRET"}`, `{"iban":"S3CRET \ud800"}`,
	}
	lines, err := newLinesReader(linesReaderConfig{Path: file(t, "in.jsonl", strings.Join(docs, "\n"))}, item.TypeOf[account]("account"))
	require.NoError(t, err)
	unread := itemkit.UnreadItems(t, lines)
	require.Len(t, unread, len(docs))
	require.Empty(t, itemkit.Quoting(unread, "S3CRET", "12345"))
	require.Equal(t, `Rate/0 {"id":1,"terms":{"rate":["S3CRET"]}}`, unread[4].Fault())
	require.Equal(t, "id/0", unread[0].Fault())
	require.ErrorContains(t, unread[0].Err, "field id: the value does not fit a int8")
	require.ErrorContains(t, unread[4].Err, "field Rate: the value is not of type float")
}
