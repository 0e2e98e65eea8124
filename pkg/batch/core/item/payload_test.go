package item_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type documents [][]byte

func (d *documents) ReadDocument(context.Context) ([]byte, error) {
	if len(*d) == 0 {
		return nil, io.EOF
	}
	doc := (*d)[0]
	*d = (*d)[1:]
	return doc, nil
}

func again(t *testing.T, it item.Type, text []byte) any {
	t.Helper()
	reader, err := it.FromDocuments(&documents{text})
	require.NoError(t, err)
	items := reader.NewItems(1)
	require.NoError(t, reader.Fill(t.Context(), items, 1))
	return items.At(0)
}

func TestASkippedRowIsReadAgainFromItsJSON(t *testing.T) {
	t.Parallel()
	schema, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int, From: "Id Number"},
		row.Field{Name: "name", Kind: row.String, Nulls: []string{"NA"}, Nullable: true},
		row.Field{Name: "size", Kind: row.Float, Nullable: true},
		row.Field{Name: "good", Kind: row.Bool},
		row.Field{Name: "day", Kind: row.DateKind, Format: "dd.MM.yyyy"},
		row.Field{Name: "at", Kind: row.Timestamp},
	)
	require.NoError(t, err)
	day := row.NewDate(2024, 2, 29)
	r := row.New(schema, []row.Value{
		row.IntValue(math.MaxInt64), row.StringValue("a\"\x01\u2028é"), {}, row.BoolValue(true), row.DateValue(day),
		row.TimestampValue(time.Date(2024, 1, 2, 3, 4, 5, 678000, time.UTC)),
	})
	text, truncated, sum := item.EncodePayload(r)
	require.False(t, truncated)
	require.Empty(t, sum)
	require.True(t, json.Valid(text))
	require.Contains(t, string(text), `"Id Number":9223372036854775807`)
	require.Contains(t, string(text), `"29.02.2024"`)
	require.Equal(t, r.Values(), again(t, item.RowOf("", schema), text).(item.Row).Values())
}

func TestASkippedRowWithANumberThatJSONLacksIsStoredAllTheSame(t *testing.T) {
	t.Parallel()
	schema, err := row.NewSchema(row.Field{Name: "x", Kind: row.Float})
	require.NoError(t, err)
	text, _, _ := item.EncodePayload(row.New(schema, []row.Value{row.FloatValue(math.Inf(1))}))
	require.JSONEq(t, `{"x":"+Inf"}`, string(text))
	text, _, _ = item.EncodePayload(item.Row{})
	require.JSONEq(t, `{}`, string(text))
}

type address struct {
	Street string `redact:"true"`
	Town   string
}

type contact struct {
	Phone string `redact:"true"`
}

type customer struct {
	contact
	ID      int
	Card    string   `json:"card" redact:"true"`
	Limit   *float64 `redact:"true"`
	Home    address
	Work    *address
	Others  []address
	ByName  map[string]*address
	Any     any
	private string
}

func TestWhatIsTaggedIsMaskedHoweverDeepAndTheItemIsLeftAlone(t *testing.T) {
	t.Parallel()
	limit := 9.5
	value := &customer{
		contact: contact{Phone: "secret"}, ID: 7, Card: "secret", Limit: &limit, Home: address{"secret", "A"}, Work: &address{"secret", "B"},
		Others: []address{{"secret", "C"}, {"", "D"}}, ByName: map[string]*address{"e": {"secret", "E"}, "nil": nil},
		Any: []any{1, map[string]any{"x": address{"secret", "F"}}}, private: "p",
	}
	text, truncated, sum := item.EncodePayload(value)
	require.True(t, truncated, "it is not the whole item: it must not be written as it is")
	require.Empty(t, sum)
	require.NotContains(t, string(text), "secret")
	require.JSONEq(t, `{"Phone":"***","ID":7,"card":"***","Limit":null,"Home":{"Street":"***","Town":"A"},"Work":{"Street":"***","Town":"B"},
		"Others":[{"Street":"***","Town":"C"},{"Street":"***","Town":"D"}],"ByName":{"e":{"Street":"***","Town":"E"},"nil":null},
		"Any":[1,{"x":{"Street":"***","Town":"F"}}]}`, string(text))
	require.Equal(t, "secret", value.Card)
	require.Equal(t, "secret", value.Phone)
	require.Equal(t, "secret", value.Work.Street)
	require.Equal(t, "secret", value.Others[0].Street)
	require.Equal(t, "secret", value.ByName["e"].Street)
	require.Equal(t, "secret", value.Any.([]any)[1].(map[string]any)["x"].(address).Street)
	require.Same(t, &limit, value.Limit)
}

func TestAnItemWithNothingToHideIsWholeAndIsReadAgain(t *testing.T) {
	t.Parallel()
	type hidden struct {
		ID    int
		Limit *float64 `redact:"true"`
	}
	_, truncated, _ := item.EncodePayload(hidden{ID: 3})
	require.False(t, truncated, "a field that is not there has nothing to hide")
	type card struct {
		Card string `redact:"true"`
	}
	_, truncated, _ = item.EncodePayload(card{})
	require.True(t, truncated, "an empty text would come back as ***")

	type plain struct {
		ID  int
		Day core.Date
		At  *time.Time
	}
	at := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	want := plain{ID: 1, Day: row.NewDate(2024, 2, 29), At: &at}
	var text []byte
	text, truncated, _ = item.EncodePayload(want)
	require.False(t, truncated)
	require.Equal(t, want, again(t, item.TypeOf[plain](""), text))
}

type node struct {
	Name string `redact:"true"`
	Next *node
}

type exploding struct{}

func (exploding) MarshalJSON() ([]byte, error) { panic("boom") }

func TestAnItemWithoutAJSONFormIsStoredWithTheReason(t *testing.T) {
	t.Parallel()
	cycle := &node{Name: "secret"}
	cycle.Next = cycle
	for reason, value := range map[string]any{"cycle": cycle, "chan": make(chan int), "boom": exploding{}} {
		text, truncated, _ := item.EncodePayload(value)
		require.True(t, truncated)
		var why string
		require.NoError(t, json.Unmarshal(text, &why))
		require.Contains(t, why, reason)
		require.NotContains(t, why, "secret")
	}
	text, truncated, _ := item.EncodePayload(nil)
	require.Equal(t, "null", string(text))
	require.False(t, truncated)
}

func TestALongItemIsCutAndKnownByItsSum(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"x", "é", "\x01", `"`, "日"} {
		value := struct{ A string }{strings.Repeat(letter, item.MaxPayloadBytes)}
		whole, err := json.Marshal(value)
		require.NoError(t, err)
		text, truncated, sum := item.EncodePayload(value)
		require.True(t, truncated)
		require.LessOrEqual(t, len(text), item.MaxPayloadBytes)
		require.Greater(t, len(text), item.MaxPayloadBytes*3/4)
		want := sha256.Sum256(whole)
		require.Equal(t, hex.EncodeToString(want[:]), sum)
		var beginning string
		require.NoError(t, json.Unmarshal(text, &beginning))
		require.True(t, strings.HasPrefix(string(whole), beginning))
	}
	just := strings.Repeat("x", item.MaxPayloadBytes-2)
	text, truncated, _ := item.EncodePayload(just)
	require.Len(t, text, item.MaxPayloadBytes)
	require.False(t, truncated)
}

func TestASkippedStructWithPathsIsReadAgain(t *testing.T) {
	t.Parallel()
	type quake struct {
		ID   string     `from:"id"`
		Mag  *float64   `from:"properties.mag"`
		Day  *core.Date `from:"properties.day" format:"dd.MM.yyyy"`
		Tags []string   `from:"properties.tags"`
		Net  string     `json:"net" from:"Network"`
	}
	mag, day := 4.5, row.NewDate(2026, 11, 22)
	want := quake{ID: "x", Mag: &mag, Day: &day, Tags: []string{"a"}, Net: "us"}
	it := item.TypeOf[quake]("")
	require.Equal(t, want, again(t, it, []byte(`{"id":"x","properties":{"mag":4.5,"day":"22.11.2026","tags":["a"]},"net":"us","Network":"no"}`)))
	text, _, _ := item.EncodePayload(want)
	require.Equal(t, want, again(t, it, text))
	reader, err := it.FromDocuments(&documents{[]byte(`{"net":"us"}`)})
	require.NoError(t, err)
	require.ErrorContains(t, reader.Fill(t.Context(), reader.NewItems(1), 1), "field ID")
}

func TestASkippedRowWithPathsIsReadAgain(t *testing.T) {
	t.Parallel()
	schema, err := row.NewSchema(row.Field{Name: "mag", Kind: row.Float, From: "properties.mag"}, row.Field{Name: "lon", Kind: row.Int, From: "at[0]"})
	require.NoError(t, err)
	want := row.New(schema, []row.Value{row.FloatValue(4.5), row.IntValue(7)})
	text, _, _ := item.EncodePayload(want)
	require.Equal(t, want.Values(), again(t, item.RowOf("", schema), text).(item.Row).Values())
}
