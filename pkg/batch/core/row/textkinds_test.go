package row_test

import (
	"encoding/json"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const anID = "c0ffee00-0000-4000-8000-00000000000a"

func uuid(t testing.TB, text string) row.Value {
	t.Helper()
	u, err := row.ParseUUID(text)
	require.NoError(t, err)
	return row.UUIDValue(u)
}

// Rule D12.
func TestTextsOfJSONUUIDsAndBytesAreReadInTheirForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    row.Field
		text string
		want row.Value
	}{
		{row.Field{Kind: row.JSONKind}, " { \"a b\" : [ 1 , 2.50 , \"x \\\" y\" ] }\n", row.JSONValue(`{"a b":[1,2.50,"x \" y"]}`)},
		{row.Field{Kind: row.JSONKind}, `"text"`, row.JSONValue(`"text"`)},
		{row.Field{Kind: row.JSONKind, Nullable: true}, " null ", row.Value{}},
		{row.Field{Kind: row.JSONKind, Nullable: true}, "", row.Value{}},
		{row.Field{Kind: row.UUIDKind}, anID, uuid(t, anID)},
		{row.Field{Kind: row.UUIDKind}, " {C0FFEE00-0000-4000-8000-00000000000A} ", uuid(t, anID)},
		{row.Field{Kind: row.UUIDKind}, "urn:uuid:c0ffee00-0000-4000-8000-00000000000a", uuid(t, anID)},
		{row.Field{Kind: row.UUIDKind}, "c0ffee000000400080000000000000" + "0A", uuid(t, anID)},
		{row.Field{Kind: row.BytesKind}, "AP9c", row.BytesText("\x00\xff\\")},
		{row.Field{Kind: row.BytesKind}, "_-8", row.BytesText("\xff\xef")},
		{row.Field{Kind: row.BytesKind}, "YQ==", row.BytesText("a")},
		{row.Field{Kind: row.BytesKind}, "YQ", row.BytesText("a")},
		{row.Field{Kind: row.BytesKind}, `\x00FF`, row.BytesText("\x00\xff")},
		{row.Field{Kind: row.BytesKind, Format: "hex"}, "0x00ff", row.BytesText("\x00\xff")},
		{row.Field{Kind: row.BytesKind, Format: "hex"}, "00ff", row.BytesText("\x00\xff")},
		{row.Field{Kind: row.BytesKind, Nulls: []string{}}, "", row.BytesText("")},
	} {
		got, err := field(t, c.f).Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, "%s from %q", c.f.Kind, c.text)
	}
}

func TestTextsThatAreNoJSONUUIDOrBytesAreInvalidItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f          row.Field
		text, want string
	}{
		{row.Field{Kind: row.JSONKind}, `{"a":1`, "is not json (the text ends inside a value)"},
		{row.Field{Kind: row.JSONKind}, `{'a':1}`, "(byte 2)"},
		{row.Field{Kind: row.JSONKind}, `{"a":1,"a":2}`, "twice"},
		{row.Field{Kind: row.JSONKind}, "null", "not nullable"},
		{row.Field{Kind: row.UUIDKind}, "c0ffee", "is not a uuid (expected 8-4-4-4-12 digits in hex"},
		{row.Field{Kind: row.UUIDKind}, anID + "0", "is not a uuid"},
		{row.Field{Kind: row.BytesKind}, "a b", "is not bytes (expected base64)"},
		{row.Field{Kind: row.BytesKind}, "deadbeef01", "for hex set format: hex"},
		{row.Field{Kind: row.BytesKind}, "YQ===", "expected base64"},
		{row.Field{Kind: row.BytesKind, Format: "hex"}, "abc", "two hexadecimal digits for each byte"},
	} {
		_, err := field(t, c.f).Parse(c.text)
		require.ErrorContains(t, err, c.want, c.text)
		require.True(t, exception.IsSkippable(err))
	}
	_, err := row.NewSchema(row.Field{Name: "a", Kind: row.BytesKind, Format: "base32"})
	require.ErrorContains(t, err, "write base64 or hex")
}

func TestJSONIsEqualAsAValue(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]row.JSON{{`{"a":1,"b":[2.0]}`, `{"b":[2],"a":1.00}`}, {`"<é"`, `"\u003c\u00e9"`}, {`1e3`, `1000`}} {
		a, b := row.JSONValue(pair[0]), row.JSONValue(pair[1])
		require.True(t, a.Equal(b), pair)
		require.Equal(t, a.Canonical(), b.Canonical())
		require.Zero(t, row.Compare(a, b))
		require.Equal(t, row.AppendKey(nil, a), row.AppendKey(nil, b))
	}
	require.False(t, row.JSONValue(`[1,2]`).Equal(row.JSONValue(`[2,1]`)))
	require.False(t, row.JSONValue(`1`).Equal(row.IntValue(1)))
}

func TestAUUIDAndBytesComeBackFromTheirTextsAndGoTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := row.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		require.Equal(t, u, row.UUIDValue(u).UUID())
		for _, v := range []row.Value{row.UUIDValue(u), row.BytesValue(b)} {
			f := row.Field{Name: "x", Kind: v.Kind(), Format: map[bool]string{true: rapid.SampledFrom([]string{"", "hex", "base64"}).Draw(t, "format")}[v.Kind() == row.BytesKind], Nulls: []string{}}
			s, err := row.NewSchema(f)
			require.NoError(t, err)
			for _, text := range []string{v.String(), string(s.Field(0).AppendText(nil, v))} {
				if text == v.String() && f.Format == "hex" {
					continue
				}
				got, err := s.Field(0).Parse(text)
				require.NoError(t, err)
				require.Equal(t, v, got)
			}
			again, err := row.ValueOf(v.Any())
			require.NoError(t, err)
			require.Equal(t, v, again)
		}
		text, err := json.Marshal(u)
		require.NoError(t, err)
		var read row.UUID
		require.NoError(t, json.Unmarshal(text, &read))
		require.Equal(t, u, read)
	})
}

func TestAValueStaysSmall(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, unsafe.Sizeof(row.Value{}), uintptr(32))
}
