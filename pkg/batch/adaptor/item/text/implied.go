package text

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (c *cell) parse(l line, schema *row.Schema) (row.Value, error) {
	f := schema.Field(c.field)
	if c.form != formText {
		return c.parseNumber(l.at(c.span), l.codec, f)
	}
	text, err := l.read(c.span)
	if err != nil {
		return row.Value{}, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %w", f.Name, err))
	}
	text = c.value(text)
	if c.decimals < 0 {
		return f.Parse(text)
	}
	digits := strings.TrimSpace(text)
	if digits == "" {
		return f.Parse("")
	}
	sign := ""
	if digits[0] == '-' || digits[0] == '+' {
		sign, digits = digits[:1], digits[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return row.Value{}, exception.InvalidItem("", exception.ClassParse,
			fmt.Errorf("field %s: %s is not a number with an implied point: write digits, with an optional sign before them", f.Name, f.Quoted(fmt.Sprintf("%.60q", text))))
	}
	if missing := c.decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	d, err := row.ParseDecimal(sign + digits[:len(digits)-c.decimals] + "." + digits[len(digits)-c.decimals:])
	if err != nil {
		return row.Value{}, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %w", f.Name, err))
	}
	return f.FitDecimal(d)
}

func (c cell) textOf(dst []byte, f *row.Field, v row.Value) ([]byte, error) {
	if c.decimals < 0 || v.Kind() != row.DecimalKind {
		return appendText(dst, f, v)
	}
	text, negative, err := c.scaled(v)
	if err != nil {
		return dst, fmt.Errorf("field %s: %w", f.Name, err)
	}
	if negative {
		dst = append(dst, '-')
	}
	return append(dst, text...), nil
}
