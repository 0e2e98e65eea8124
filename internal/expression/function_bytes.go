package expression

import (
	"fmt"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func encodings() []string { return []string{"hex", "base64", "utf8"} }

const utf8Encoding = "utf8"

func toUUID(c *call) (*typed, error) {
	if err := c.want(0, row.String, row.UUIDKind); err != nil || c.is(0, row.UUIDKind) {
		return c.args[0], err
	}
	return c.apply1(row.UUIDKind, func(a row.Value) (row.Value, error) {
		id, err := row.ParseUUID(a.Str())
		if err != nil {
			return row.Value{}, fmt.Errorf("%s is not a uuid: write 8-4-4-4-12 digits in hex", quote(a.Str()))
		}
		return row.UUIDValue(id), nil
	}), nil
}

func (c *call) encoding() (*row.Field, error) {
	if err := c.want(1, row.String); err != nil {
		return nil, err
	}
	name := c.args[1].value.Str()
	if c.args[1].literal && name == utf8Encoding {
		return nil, nil
	}
	if schema, err := row.NewSchema(row.Field{Name: "it", Kind: row.BytesKind, Format: name, Nulls: []string{}}); err == nil && c.args[1].literal && name != "" {
		return schema.Field(0), nil
	}
	return nil, errorf(c.args[1].at, "%s supports %s, written in quotes", c.name, quotedNames(encodings()))
}

func decodeText(c *call) (*typed, error) {
	if err := c.want(0, row.String); err != nil {
		return nil, err
	}
	field, err := c.encoding()
	if err != nil {
		return nil, err
	}
	return c.apply1(row.BytesKind, func(a row.Value) (row.Value, error) {
		if field == nil {
			return row.BytesText(a.Str()), nil
		}
		v, err := field.Parse(a.Str())
		if err != nil {
			return row.Value{}, fmt.Errorf("%s is not a text in %s", quote(a.Str()), field.Format)
		}
		return v, nil
	}), nil
}

func encodeBytes(c *call) (*typed, error) {
	if err := c.want(0, row.BytesKind); err != nil {
		return nil, err
	}
	field, err := c.encoding()
	if err != nil {
		return nil, err
	}
	return c.apply1(row.String, func(a row.Value) (row.Value, error) {
		if field != nil {
			return row.StringValue(string(field.AppendText(nil, a))), nil
		}
		if !utf8.ValidString(a.Bytes()) {
			return row.Value{}, fmt.Errorf("the bytes are not UTF-8")
		}
		return row.StringValue(a.Bytes()), nil
	}), nil
}
