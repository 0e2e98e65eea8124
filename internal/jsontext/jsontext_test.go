//test:plain

package jsontext_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/jsontext"
)

func TestStrictReadingRefusesWhatEncodingJSONMendsInSilence(t *testing.T) {
	t.Parallel()
	wide := make([]string, 100)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"k%d":{"k":%d}`, i, i)
	}
	object := "{" + strings.Join(wide, ",") + "}"
	for doc, want := range map[string]string{
		"":                      "the text ends inside a value",
		`{"a":1,"b":{"a":2}}`:   "",
		`[{"a":1},{"a":1}]`:     "",
		`{"a":1,"b":2,"a":3}`:   `the key "a" is there twice (byte 14)`,
		`{"a":[{"b":1,"b":1}]}`: `the key "b" is there twice (byte 14)`,
		`{"a":1,"\u0061":2}`:    `the key "a" is there twice (byte 8)`,
		object:                  "",
		object[:1] + object[1:len(object)-1] + `,"k77":0}`: fmt.Sprintf(`the key "k77" is there twice (byte %d)`, len(object)+1),
		"{\"a\":\"x\xff\"}":       "not valid UTF-8 (byte 8)",
		"{\"\xc3\":1}":            "not valid UTF-8 (byte 3)",
		`["\ud83d\ude00"]`:        "",
		`["\ud83d"]`:              `the lone surrogate \ud83d is no character (byte 3)`,
		`["\ud83dx"]`:             `the lone surrogate \ud83d is no character (byte 3)`,
		`["\ud83d\u0041"]`:        `the lone surrogate \ud83d is no character (byte 3)`,
		`["\ude00\ud83d"]`:        `the lone surrogate \ude00 is no character (byte 3)`,
		`{"\ud800":1}`:            `the lone surrogate \ud800 is no character (byte 3)`,
		`"\uFFFD"`:                "",
		`{"a":1}}`:                `found "}", expected the end`,
		`{"a":1 "b"`:              `found "\"", expected "," or "}"`,
		`[01]`:                    `found "1", expected "," or "]"`,
		`[1.]`:                    `found "]", expected a digit`,
		"[\"\n\"]":                "found the byte 0x0a in a string",
		`["\x"]`:                  `found "x", expected an escape`,
		strings.Repeat("[", 20e3): "values nest deeper than 10000",
	} {
		err := new(jsontext.Scanner).Valid([]byte(doc))
		if want == "" {
			require.NoError(t, err, doc)
			continue
		}
		require.EqualError(t, err, want, "%.80s", doc)
	}
}

func TestAValueEndsWhereItEnds(t *testing.T) {
	t.Parallel()
	var s jsontext.Scanner
	for _, c := range []struct {
		text  string
		atEnd bool
		want  int // 0 means that more is needed
	}{
		{`{"a":[1]},{`, false, 9}, {`"x"`, false, 3}, {`12`, false, 0}, {`12`, true, 2}, {`12,`, false, 2}, {`{"a":`, true, 0}, {`"\u00`, false, 0}, {`tr`, false, 0},
	} {
		n, err := s.ValueLen([]byte(c.text), c.atEnd)
		require.Equal(t, c.want, n, c.text)
		require.Equal(t, c.want == 0, errors.Is(err, jsontext.ErrShort), c.text)
	}
}

func find(t require.TestingT, doc string, names ...string) ([]string, error) {
	f := jsontext.NewFinder()
	for i, name := range names {
		require.Equal(t, i, f.AddName(name))
	}
	err := f.Find([]byte(doc))
	found := make([]string, len(names))
	for i, raw := range f.Found {
		found[i] = string(raw)
	}
	return found, err
}

func TestAPathLeadsToAValueUnlessTheWholeNameIsAKey(t *testing.T) {
	t.Parallel()
	const quake = `{"id":"x","properties":{"mag":4.5,"a.b":{"c":1},"place":null},"geometry":{"coordinates":[-70.1,[2,3],{"z":9}]},"no.path":7,"e..g":8}`
	for name, want := range map[string]string{
		"id": `"x"`, "properties.mag": "4.5", `properties["a.b"].c`: "1", `["properties"]["mag"]`: "4.5", "properties.place": "null",
		"properties.place.deeper": "", "geometry.coordinates[0]": "-70.1", "geometry.coordinates[1][1]": "3", "geometry.coordinates[2].z": "9",
		"geometry.coordinates[7]": "", "no.path": "7", `["no.path"]`: "7", "e..g": "8", "properties.magg": "", "Properties.mag": "", "absent.x": "",
		"geometry": `{"coordinates":[-70.1,[2,3],{"z":9}]}`,
	} {
		found, err := find(t, quake, name)
		require.NoError(t, err, name)
		require.Equal(t, want, found[0], name)
	}
	// The whole name takes precedence, at any position; fields may share a source, or a part of it.
	for _, doc := range []string{`{"a.b":1,"a":{"b":2}}`, `{"a":{"b":2},"a.b":1}`} {
		found, err := find(t, doc, "a.b", `a["b"]`, "a", "a.b")
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2", `{"b":2}`, "1"}, found)
	}
}

func TestAPathThroughAValueWithoutMembersIsAnError(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a":{"b":7}}`:     "a.b is not an object: 7",
		`{"a":[1]}`:         "a is not an object: [1]",
		`{"a":"text"}`:      `a is not an object: "text"`,
		`{"a":{"b":null}}`:  "",
		`{"a":null}`:        "",
		`{}`:                "",
		`{"a.b.c":1,"a":2}`: "",
	} {
		_, err := find(t, doc, "x", "a.b.c")
		if want == "" {
			require.NoError(t, err, doc)
			continue
		}
		require.EqualError(t, err, want)
		var stray *jsontext.PathError
		require.ErrorAs(t, err, &stray)
		require.Equal(t, 1, stray.Field)
	}
	_, err := find(t, `{"a":{"0":1}}`, "a[0]")
	require.EqualError(t, err, `a is not an array: {"0":1}`)
}

func TestANameThatIsMeantAsAPathMustBeOne(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a": "", "a.b[0].c": "", `a["b.c"]`: "", "e.g.": "", "Cost [USD]": "", "a..b": "", "x]": "",
		"a[0": `"]" is missing after [0`, "a[-1]": `[-1] is neither an index (0, 1, 2, ...) nor a quoted key`, `a["b`: `a quoted key does not end: ["b`,
		"a[0]b": `expected "." or "[" before "b"`, "[0].a": "it starts with an index, but items are objects", "a[0].": "a key is empty",
		"Temp [0-9]": `a key of this name is written ["Temp [0-9]"]`,
	} {
		err := jsontext.CheckName(name)
		if want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

func expectMembers(t require.TestingT, doc []byte) {
	var want map[string]json.RawMessage
	err := json.Unmarshal(doc, &want)
	f := jsontext.NewFinder()
	var names []string
	for name := range want {
		f.AddPath([]jsontext.Step{{Key: name}})
		names = append(names, name)
	}
	got := f.Find(doc)
	var strict *jsontext.StrictError
	if errors.As(got, &strict) {
		return
	}
	require.Equal(t, json.Valid(doc), got == nil, "%q: %v", doc, got)
	if err != nil {
		return
	}
	for i, name := range names {
		require.Equal(t, string(want[name]), string(f.Found[i]), "%s", doc)
	}
	n, err := new(jsontext.Scanner).ValueLen([]byte(strings.TrimLeft(string(doc), " \t\r\n")+" ,"), false)
	require.NoError(t, err)
	require.Equal(t, len(strings.Trim(string(doc), " \t\r\n")), n)
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
		object := rapid.MapOfN(text, value(2), 0, 40).Draw(t, "object")
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
	f.Add([]byte(`{"\ud83d\ude00":[-0.5e+7,true,"\u0000"]} `))
	f.Fuzz(func(t *testing.T, doc []byte) { expectMembers(t, doc) })
}
