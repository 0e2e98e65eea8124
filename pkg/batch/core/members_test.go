package core

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func members(doc []byte) (map[string]string, bool) {
	got := map[string]string{}
	ok := json.Valid(doc) && eachMember(doc, func(key, value []byte) { got[string(key)] = string(value) })
	return got, ok
}

func expectMembers(t require.TestingT, doc []byte) {
	var want map[string]json.RawMessage
	err := json.Unmarshal(doc, &want)
	got, ok := members(doc)
	require.Equal(t, err == nil && want != nil, ok, "%s", doc)
	if !ok {
		return
	}
	require.Len(t, got, len(want), "%s", doc)
	for key, value := range want {
		require.Equal(t, string(value), got[key], "%s", doc)
	}
}

func TestMembersAreThoseOfEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		"", "null", "[]", "7", "{}", " { } ", `{"a":1}`, `{"a":1,"a":2}`, ` { "a" : [ 1 , "]" ] , "b\"\\" : { "c" : "}\"" } , "d":-1.5e3 }`,
		`{"\u00e9":null,"":true}`, `{"a":"\\"}`, `{"a":"x","b"`, "{\"\xff\":\"\xff\"}",
	} {
		expectMembers(t, []byte(doc))
	}
	text := rapid.StringOf(rapid.RuneFrom([]rune("a\"\\{}[]:, é\n")))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		options := []*rapid.Generator[any]{rapid.Int().AsAny(), rapid.Bool().AsAny(), text.AsAny(), rapid.Just[any](nil)}
		if depth > 0 {
			options = append(options, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(text, value(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(options...)
	}
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(text, value(2), 0, 4).Draw(t, "object")
		marshal := func(v any) ([]byte, error) { return json.Marshal(v) }
		if rapid.Bool().Draw(t, "indented") {
			marshal = func(v any) ([]byte, error) { return json.MarshalIndent(v, " ", "\t") }
		}
		doc, err := marshal(object)
		require.NoError(t, err)
		expectMembers(t, doc)
	})
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":["}"]}}`))
	f.Fuzz(func(t *testing.T, doc []byte) { expectMembers(t, doc) })
}
