package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func jsonFunctions() []function {
	return []function{
		{"json_get", "json_get(json, 'a.b[0]'): the value at a path of json, or of a text with JSON, as a text; nil if it is missing or null", 2, 2, jsonGet},
		{"json", "json(text): the text parsed as JSON; json(list): the array", 1, 1, toJSON},
	}
}

func toJSON(c *call) (*typed, error) {
	if c.args[0].kind.IsList() {
		return c.apply1(row.JSONKind, func(a row.Value) (row.Value, error) { return row.JSONValue(row.JSON(a.String())), nil }), nil
	}
	if err := c.want(0, row.String, row.JSONKind); err != nil || c.is(0, row.JSONKind) {
		return c.args[0], err
	}
	return c.apply1(row.JSONKind, func(a row.Value) (row.Value, error) {
		j, err := row.ParseJSON(a.Str())
		if err == nil && j == "null" {
			err = errors.New("null is not a value: write nil")
		}
		if err != nil {
			return row.Value{}, fmt.Errorf("%s is not json (%w)", quote(a.Str()), err)
		}
		return row.JSONValue(j), nil
	}), nil
}

func jsonGet(c *call) (*typed, error) {
	if err := c.want(0, row.String, row.JSONKind); err != nil {
		return nil, err
	}
	if err := c.want(1, row.String); err != nil {
		return nil, err
	}
	arg := c.args[1]
	if !arg.literal {
		return nil, errorf(arg.at, "json_get needs its path as a text in quotes: %s", c.usage)
	}
	path := arg.value.Str()
	ofArray := strings.HasPrefix(path, "[") && !strings.HasPrefix(path, `["`)
	if ofArray {
		path = "a" + path
	}
	if err := jsontext.CheckName(path); err != nil || path == "" {
		return nil, errorf(arg.at, "%s is not a path: write keys and indexes, such as a.b[0]", quote(arg.value.Str()))
	}
	finders := sync.Pool{New: func() any {
		f := jsontext.NewFinder()
		f.AddName(path)
		return f
	}}
	t := c.apply1(row.String, func(a row.Value) (row.Value, error) {
		find := finders.Get().(*jsontext.Finder) //nolint:forcetypeassert // New makes no other
		defer finders.Put(find)
		doc := []byte(a.String())
		if ofArray {
			doc = fmt.Appendf(make([]byte, 0, len(doc)+8), `{"a":%s}`, doc)
		}
		if err := find.Find(doc); err != nil {
			return row.Value{}, fmt.Errorf("json_get: %w: %s", err, quote(a.String()))
		}
		return jsonText(find.Found[0])
	})
	t.nullable = true
	return t, nil
}

func jsonText(raw []byte) (row.Value, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return row.Value{}, nil
	}
	if raw[0] == '"' {
		text, err := jsontext.Unquote(raw)
		return row.StringValue(text), err
	}
	if raw[0] != '{' && raw[0] != '[' {
		return row.StringValue(string(raw)), nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return row.Value{}, err
	}
	return row.StringValue(compact.String()), nil
}
