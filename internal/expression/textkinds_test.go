package expression_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule D12.
func TestJSONUUIDsAndBytesInExpressions(t *testing.T) {
	t.Parallel()
	id, err := row.ParseUUID("c0ffee00-0000-4000-8000-00000000000a")
	require.NoError(t, err)
	scope := expression.Scope{
		"doc": of[row.JSON](), "raw": of[json.RawMessage](), "id": of[row.UUID](), "other": of[[16]byte](), "b": of[[]byte](), "s": of[string](), "maybe": of[*row.UUID](),
		"later": of[row.UUID](), "data": of[[]byte](),
	}
	vars := map[string]any{
		"doc": row.JSON(`{"a":{"b":[1,"x"]},"n":1.50}`), "raw": json.RawMessage(` {"n" : 1.5, "a": {"b": [1, "x"]}} `), "id": id, "other": [16]byte(id), "b": []byte("a\xff"), "s": "{C0FFEE00-0000-4000-8000-00000000000A}", "maybe": nil,
		"later": id.String(), "data": "Yf8=", // as they are stored
	}
	for text, want := range map[string]any{
		"json_get(doc, 'a.b[1]')": "x", "json_get(doc, 'a')": `{"b":[1,"x"]}`, "json_get(doc, 'none')": nil, "doc == raw": true, "doc != json('{}')": true, "json(' [1, 2] ')": row.JSON("[1,2]"), "string(doc)": `{"a":{"b":[1,"x"]},"n":1.50}`,
		"id == other": true, "id == uuid(s)": true, "uuid(s)": id, "string(id)": id.String(), "id < uuid('d0ffee00-0000-4000-8000-00000000000a')": true, "id in [uuid(s)]": true, "maybe ?? id": id, "max(id, other)": id, "later == id": true,
		"b == data": true, "len(b)": int64(2), "encode(b, 'hex')": "61ff", "encode(b, 'base64')": "Yf8=", "string(b)": "Yf8=", "decode('61ff', 'hex') == b": true, "encode(decode(s, 'utf8'), 'utf8') == s": true, "hash(decode('', 'hex'), 'md5')": "d41d8cd98f00b204e9800998ecf8427e", "hash('', 'md5')": "d41d8cd98f00b204e9800998ecf8427e",
		"b > decode('61', 'hex')": true,
	} {
		p, err := expression.Compile(text, scope)
		require.NoError(t, err, text)
		got, err := p.Eval(vars)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, problem := range map[string]string{
		"doc == 'x'": "cannot compare json and a string: write json_get(x, 'a.b')", "doc < raw": "cannot compare json, which has no order", "max(doc, raw)": "json, which has no order", "id == 'x'": "write uuid('...')", "b == s": "write decode('...', 'hex')",
		"doc.a": "doc is json, which has no field a", "json('{')": "is not json", "json('null')": "write nil", "uuid('x')": "is not a uuid", "decode(s, 'rot13')": "decode supports 'hex', 'base64', 'utf8'", "decode('x', 'hex')": "is not a text in hex", "encode(b, s)": "written in quotes", "encode(b, 'utf8')": "not UTF-8",
		"unhex(s)": "decode(text, 'hex')", "parse_json(s)": "write json(text)", "doc + doc": "+ is not defined", "maybe == id": "maybe may be null",
	} {
		p, err := expression.Compile(text, scope)
		if err == nil {
			_, err = p.Eval(vars)
		}
		require.Error(t, err, text)
		hint := ""
		if e, ok := err.(*expression.Error); ok {
			hint = e.Hint
		}
		require.Contains(t, err.Error()+" "+hint, problem, text)
	}
}
